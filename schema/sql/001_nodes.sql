-- SPDX-License-Identifier: Apache-2.0
-- What survives a metaserver's restart. Keys and addresses of endpoints are not here: agents bring them again.
PRAGMA application_id = 0x4b4d4554; -- KMET

CREATE TABLE nodes (
    id          TEXT PRIMARY KEY NOT NULL,
    incarnation INTEGER NOT NULL CHECK (incarnation BETWEEN 1 AND 4294967295),
    identity    INTEGER NOT NULL, -- of the process that registered: 32 bits
    expired     INTEGER NOT NULL CHECK (expired IN (0, 1))
) WITHOUT ROWID;

-- An endpoint belongs to one node.
CREATE TABLE endpoints (
    gid  BLOB NOT NULL CHECK (length(gid) = 16),
    pool INTEGER NOT NULL CHECK (pool BETWEEN 0 AND 65535),
    node TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    PRIMARY KEY (gid, pool)
) WITHOUT ROWID;

CREATE INDEX endpoints_node ON endpoints (node);
