-- The event log, its summaries, and the named values.

CREATE TABLE topic (
    id INTEGER PRIMARY KEY,
    topic BLOB NOT NULL UNIQUE,
    units INTEGER NOT NULL,
    events INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    stepped INTEGER NOT NULL  -- 1 if stored_at ever went back from one unit to the next
);

-- What the held units of one author and device in one topic span; ids grow in the order of arrival.
CREATE TABLE chain (
    id INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    author BLOB NOT NULL,
    device BLOB NOT NULL,
    units INTEGER NOT NULL,
    longest INTEGER NOT NULL,  -- the most events of one unit: how far back an overlap can begin
    first INTEGER,
    last INTEGER,
    head BLOB,
    UNIQUE (topic, author, device)
);

-- raw stands last: a unit of many pages is then read only where its bytes are asked for.
CREATE TABLE unit (
    position INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    chain INTEGER NOT NULL,
    first INTEGER,
    count INTEGER NOT NULL,
    stored_at REAL NOT NULL,
    head BLOB NOT NULL,
    raw BLOB NOT NULL
);

CREATE INDEX unit_by_topic ON unit (topic);
CREATE INDEX unit_by_time ON unit (topic, stored_at);
CREATE INDEX unit_by_chain ON unit (chain, first);

-- Heads are random. An index over all of them would change one page for each unit; by stretches of
-- 16,384 positions the pages that change are few, and a search looks into each stretch.
CREATE INDEX unit_by_head ON unit (position >> 14, substr(head, 1, 8));

-- The newest position that was ever given, so that none is given twice after an eviction.
CREATE TABLE log_end (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL
);
INSERT INTO log_end VALUES (1, 0);

CREATE TABLE cell (
    space TEXT NOT NULL,
    key BLOB NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (space, key)
) WITHOUT ROWID;
