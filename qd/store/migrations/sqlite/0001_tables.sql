-- The tables as they began, for the embedded store; columns and states are those of schema.sql.
-- Times are UTC text to the millisecond, which compares as time.
-- compatible_from: 1

CREATE TABLE qd_schema (
  version INTEGER NOT NULL PRIMARY KEY,
  compatible_from INTEGER NOT NULL
);

CREATE TABLE qd_jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL DEFAULT 'default',
  type TEXT NOT NULL,
  payload TEXT NOT NULL DEFAULT '{}',
  priority INTEGER NOT NULL DEFAULT 2,
  lane INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER NULL DEFAULT NULL,
  available_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  reserved_at TEXT NULL DEFAULT NULL,
  reserved_by TEXT NULL DEFAULT NULL,
  unique_key TEXT NULL DEFAULT NULL,
  last_error TEXT NULL DEFAULT NULL,
  history TEXT NULL DEFAULT NULL,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  CONSTRAINT qd_jobs_queue_check CHECK (length(queue) BETWEEN 1 AND 64 AND queue NOT GLOB '*[^-A-Za-z0-9_.:]*'),
  CONSTRAINT qd_jobs_type_check CHECK (length(type) BETWEEN 1 AND 128 AND type NOT GLOB '*[^-A-Za-z0-9_.:]*'),
  CONSTRAINT qd_jobs_payload_check CHECK (typeof(payload) = 'text' AND json_valid(payload)),
  CONSTRAINT qd_jobs_priority_check CHECK (typeof(priority) = 'integer' AND priority BETWEEN 0 AND 3),
  CONSTRAINT qd_jobs_lane_check CHECK (lane IN (0, 1, 2) AND (lane = 1) = (reserved_by IS NOT NULL)),
  CONSTRAINT qd_jobs_max_attempts_check CHECK (max_attempts IS NULL OR max_attempts BETWEEN 1 AND 65535),
  CONSTRAINT qd_jobs_available_at_check CHECK (
    available_at >= '1971-01-01 00:00:00'
    AND available_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'
  ),
  CONSTRAINT qd_jobs_unique_key_check CHECK (unique_key IS NULL OR length(unique_key) <= 191)
);

CREATE UNIQUE INDEX qd_jobs_unique ON qd_jobs (queue, unique_key);

CREATE INDEX qd_jobs_claim ON qd_jobs (queue, lane, priority, available_at);

CREATE TABLE qd_failed_jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id INTEGER NOT NULL,
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  payload TEXT NOT NULL,
  priority INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  max_attempts INTEGER NULL DEFAULT NULL,
  unique_key TEXT NULL DEFAULT NULL,
  history TEXT NULL DEFAULT NULL,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  reason TEXT NOT NULL,
  error TEXT NULL DEFAULT NULL,
  traceback TEXT NULL DEFAULT NULL,
  reserved_by TEXT NULL DEFAULT NULL,
  failed_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);

CREATE INDEX qd_failed_jobs_job ON qd_failed_jobs (job_id);

CREATE INDEX qd_failed_jobs_queue ON qd_failed_jobs (queue, id);

CREATE INDEX qd_failed_jobs_failed_at ON qd_failed_jobs (failed_at);

CREATE TABLE qd_queues (
  name TEXT NOT NULL PRIMARY KEY,
  paused_at TEXT NULL DEFAULT NULL
);

CREATE TABLE qd_daemons (
  id TEXT NOT NULL PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  version TEXT NOT NULL,
  queues TEXT NOT NULL,
  types TEXT NOT NULL,
  started_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  seen_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);
