-- SPDX-License-Identifier: Apache-2.0
-- What tells the process that registered from another one: for each of its endpoints two checksums of 32 bits, of its
-- GID and pool and of all of it, little-endian. NULL: identity alone is known.
ALTER TABLE nodes ADD COLUMN prints BLOB;
