/* SPDX-License-Identifier: Apache-2.0 */
/* schema/sql/NNN_*.sql, embedded when built: migration i takes a database from user_version i to i
 * + 1. */
#ifndef SCHEMA_SQL_H
#define SCHEMA_SQL_H

extern const char *const schema_sql_migrations[];
extern const unsigned schema_sql_migration_count;

#endif
