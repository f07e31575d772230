-- SPDX-License-Identifier: Apache-2.0
-- Names of regions, each of one life of a node, with the token that grants the region.
CREATE TABLE names (
    tenant      TEXT NOT NULL,
    name        TEXT NOT NULL,
    node        TEXT NOT NULL,
    incarnation INTEGER NOT NULL CHECK (incarnation BETWEEN 1 AND 4294967295),
    token       TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
