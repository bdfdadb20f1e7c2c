-- The accounts that qd needs, with no more than they use. Run as an administrator, AFTER the first
-- `qd migrate` (a grant on a table needs the table); change the passwords, and `qd` if your
-- database has another name.

-- Who runs `qd migrate`: makes and changes the tables. Needed at upgrades only.
CREATE USER IF NOT EXISTS 'qd_migrator'@'%' IDENTIFIED BY 'change-me';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON qd.* TO 'qd_migrator'@'%';

-- The daemon and the command line: rows of qd's own tables, nothing else of the application's.
CREATE USER IF NOT EXISTS 'qd'@'%' IDENTIFIED BY 'change-me';
GRANT SELECT, INSERT, UPDATE, DELETE ON qd.qd_jobs TO 'qd'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON qd.qd_failed_jobs TO 'qd'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON qd.qd_queues TO 'qd'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON qd.qd_daemons TO 'qd'@'%';
GRANT SELECT ON qd.qd_schema TO 'qd'@'%';

-- An application that enqueues. INSERT alone does where no job has a unique key; finding the holder
-- of one takes SELECT and UPDATE. An account whose handlers call job.complete() needs DELETE too.
CREATE USER IF NOT EXISTS 'shop'@'%' IDENTIFIED BY 'change-me';
GRANT SELECT, INSERT, UPDATE ON qd.qd_jobs TO 'shop'@'%';
