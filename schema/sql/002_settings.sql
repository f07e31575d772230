-- SPDX-License-Identifier: Apache-2.0
-- What operators set, as the REST interface says it (without name and revision), and who changed what.
CREATE TABLE settings (
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 1), -- of its last change
    body     TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- The newest changes, one for each revision.
CREATE TABLE events (
    revision INTEGER PRIMARY KEY NOT NULL CHECK (revision >= 1),
    time_ms  INTEGER NOT NULL, -- since 1970
    who      TEXT NOT NULL,
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    before   TEXT, -- NULL: there was none
    after    TEXT  -- NULL: there is none any more
);
