"""The study of attacks: what attackers gain, what it costs them and us, and who notices."""
