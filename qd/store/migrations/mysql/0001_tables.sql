-- The tables as they began. schema.sql holds what all migrations together make.
-- compatible_from: 1
--
-- qd_schema comes first: while it stands empty this migration was interrupted, and is run again.

-- Which schema this is: one row. A daemon runs with any schema whose `compatible_from` it reaches,
-- so that old and new daemons overlap in a rolling upgrade.
CREATE TABLE IF NOT EXISTS qd_schema (
  version INT UNSIGNED NOT NULL,
  compatible_from INT UNSIGNED NOT NULL,
  PRIMARY KEY (version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Jobs that are waiting or running; a finished job's row is deleted.
--
--   state     lane  reserved_by  available_at
--   ready     0     NULL         <= now
--   delayed   0     NULL         >  now   (a delay or a back-off)
--   reserved  1     set          >  now   (the end of the lease)
--   stale     1     set          <= now   (the lease has run out: its owner died)
--   blocked   2     NULL         (waits for something else)
--
-- Rows of type `qd.post`, due in 2038, are no jobs: they keep the claim's index walk short.
CREATE TABLE IF NOT EXISTS qd_jobs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  queue VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'default',
  -- what is to be done: the name of a handler
  type VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  -- any JSON value, kept byte for byte; at most 31 levels of nesting
  payload LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ('{}'),
  -- 0 urgent, 1 high, 2 normal, 3 low
  priority TINYINT UNSIGNED NOT NULL DEFAULT 2,
  -- kept by qd, for the index: see the table above
  lane TINYINT UNSIGNED NOT NULL DEFAULT 0,
  -- starts so far; raised by the claim
  attempts SMALLINT UNSIGNED NOT NULL DEFAULT 0,
  -- starts that ended without a word: the process died
  crashes TINYINT UNSIGNED NOT NULL DEFAULT 0,
  -- NULL: the queue's
  max_attempts SMALLINT UNSIGNED NULL DEFAULT NULL,
  -- when it is due; while it is reserved, the end of its lease
  available_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  reserved_at TIMESTAMP(6) NULL DEFAULT NULL,
  -- the claim's token, never used twice: only who holds it may settle the job
  reserved_by VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL,
  -- at most one job of a queue has it
  unique_key VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT NULL,
  -- made by the server: the queue of a job that has such a key. Galera takes an entry of a unique index for
  -- the same on two nodes unless all of it is NULL: (queue, NULL) would have all jobs of a queue conflict
  unique_queue VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin
    GENERATED ALWAYS AS (IF(unique_key IS NULL, NULL, queue)) STORED,
  last_error TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT NULL,
  -- JSON list of the last 20 attempts: start, end, worker, outcome, error
  history LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT NULL,
  created_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  UNIQUE KEY qd_jobs_unique (unique_queue, unique_key),
  -- a claim reads one lane of one priority in this order and stops; the id follows by itself
  KEY qd_jobs_claim (queue, lane, priority, available_at),
  -- these hold also where the session's sql_mode would cut, round or zero a value silently
  CONSTRAINT qd_jobs_queue_check CHECK (queue <> '' AND queue NOT REGEXP '[^-A-Za-z0-9_.:]'),
  CONSTRAINT qd_jobs_type_check CHECK (type <> '' AND type NOT REGEXP '[^-A-Za-z0-9_.:]'),
  CONSTRAINT qd_jobs_payload_check CHECK (JSON_VALID(payload)),
  CONSTRAINT qd_jobs_priority_check CHECK (priority <= 3),
  CONSTRAINT qd_jobs_lane_check CHECK (lane <= 2 AND (lane = 1) = (reserved_by IS NOT NULL)),
  CONSTRAINT qd_jobs_max_attempts_check CHECK (max_attempts IS NULL OR max_attempts >= 1),
  CONSTRAINT qd_jobs_available_at_check CHECK (available_at >= '1971-01-01 00:00:00')
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Dead letters: jobs that qd gave up. A retry brings the row back under its job_id.
CREATE TABLE IF NOT EXISTS qd_failed_jobs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  -- the id it had in qd_jobs; not unique, ids can repeat after a restore
  job_id BIGINT UNSIGNED NOT NULL,
  queue VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  priority TINYINT UNSIGNED NOT NULL,
  attempts SMALLINT UNSIGNED NOT NULL,
  max_attempts SMALLINT UNSIGNED NULL DEFAULT NULL,
  unique_key VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT NULL,
  history LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT NULL,
  created_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  -- error, timeout, crash, lost, interrupted, rejected, unknown_type or payload
  reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  error TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT NULL,
  traceback MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT NULL,
  -- the token of the last claim
  reserved_by VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL,
  failed_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  KEY qd_failed_jobs_job (job_id),
  KEY qd_failed_jobs_queue (queue, id),
  KEY qd_failed_jobs_failed_at (failed_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Queues that are paused, or were; one that has no row here isn't.
CREATE TABLE IF NOT EXISTS qd_queues (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  paused_at TIMESTAMP(6) NULL DEFAULT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Who runs.
CREATE TABLE IF NOT EXISTS qd_daemons (
  id VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  host VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  pid INT UNSIGNED NOT NULL,
  version VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  -- JSON lists of names
  queues MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  types MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  started_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  seen_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
