-- A checksum for each named value (docs/adr/0034-damaged-cells.md). What older files hold is taken as it is;
-- -1 is no checksum: of a row that has text where only bytes were ever written.

ALTER TABLE cell ADD COLUMN checksum INTEGER NOT NULL DEFAULT -1;
UPDATE cell SET checksum = cell_checksum(CAST(space AS BLOB), key, value)
    WHERE typeof(key) = 'blob' AND typeof(value) = 'blob';
