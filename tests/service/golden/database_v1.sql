-- A database of schema version 1, as a killed quasi-server 0.1.0 left it. It holds jobs in five
-- states and two open attempts.
PRAGMA foreign_keys = OFF;
PRAGMA application_id = 1364541779;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE artifacts (
  job_id     INTEGER NOT NULL REFERENCES jobs (id),
  name       TEXT    NOT NULL,
  digest     TEXT    NOT NULL,
  size_bytes INTEGER NOT NULL,
  media_type TEXT    NOT NULL,
  PRIMARY KEY (job_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "artifacts" VALUES(1,'data.bin','c924b7af02ecbae8261b1006aacd6264144aafbdff5ef028f5642908eb252c86',1000,'application/octet-stream');
INSERT INTO "artifacts" VALUES(1,'manifest.json','de8f3375fc786017cfb8fe9f4e0196e6c9305bbd6bbf408edf887f63ac56eace',821,'application/json');
INSERT INTO "artifacts" VALUES(1,'summary.json','7e49816247bec2809793d3e8c1b4e1f98f92aa355bfd7f3340b89793917712b6',145,'application/json');
CREATE TABLE attempts (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  uid          TEXT    NOT NULL UNIQUE,
  job_id       INTEGER NOT NULL REFERENCES jobs (id),
  number       INTEGER NOT NULL,
  fence        INTEGER NOT NULL UNIQUE,
  worker_id    TEXT    NOT NULL,
  incarnation  TEXT    NOT NULL,
  device_ids   TEXT    NOT NULL,
  acquire_id   TEXT    NOT NULL,
  granted_ms   INTEGER NOT NULL,
  started_ms   INTEGER NOT NULL DEFAULT 0,
  ended_ms     INTEGER NOT NULL DEFAULT 0,
  outcome      INTEGER NOT NULL DEFAULT 0 CHECK (outcome BETWEEN 0 AND 5),
  reason       INTEGER NOT NULL DEFAULT 0,
  message      TEXT    NOT NULL DEFAULT '',
  exit_status  INTEGER,
  signal       INTEGER,
  release_message TEXT NOT NULL DEFAULT '',
  wall_seconds REAL    NOT NULL DEFAULT 0,
  gpu_seconds  REAL    NOT NULL DEFAULT 0,
  peak_gpu_bytes INTEGER NOT NULL DEFAULT 0,
  peak_ram_bytes INTEGER NOT NULL DEFAULT 0,
  energy_joules REAL   NOT NULL DEFAULT 0,
  log_bytes    INTEGER NOT NULL DEFAULT 0,
  log_full     INTEGER NOT NULL DEFAULT 0,
  counted      INTEGER NOT NULL DEFAULT 1,
  new_checkpoint INTEGER NOT NULL DEFAULT 0,
  report_digest TEXT   NOT NULL DEFAULT '',
  end_state    INTEGER NOT NULL DEFAULT 3,
  CHECK ((outcome = 0) = (ended_ms = 0)),
  UNIQUE (job_id, number)
) STRICT;
INSERT INTO "attempts" VALUES(1,'a_01M83BCFT6WRH36D0DMRFFCE87',1,1,1,'w_01M83BCDWRNCWMECH0S983ZRM0','8f515008-029f-4635-b916-3b868dd14d9f','cpu
','17ca0865-7d72-4602-b160-1319b9ef5759',1795408936774,1795408936815,1795408936853,1,0,'',NULL,NULL,'',0.036503259,0.0,0,20566016,0.0,0,0,1,0,'ad1adcb04d215a5c1602da3ce1af2f78aca6fcb14421b3b85be89a1821b83813',7);
INSERT INTO "attempts" VALUES(2,'a_01M83BCFT6AWWQ2MXFKGJM2R5F',2,1,2,'w_01M83BCDWRNCWMECH0S983ZRM0','8f515008-029f-4635-b916-3b868dd14d9f','cpu
','17ca0865-7d72-4602-b160-1319b9ef5759',1795408936774,1795408936820,1795408936829,2,1,'the engine rejected the input',10,NULL,'',0.033374298,0.0,0,20697088,0.0,0,0,1,0,'21aea007aa65bcdb020f44b0111112ff6e344c9167058e81713b1993de5c8f15',8);
INSERT INTO "attempts" VALUES(3,'a_01M83BCFXSH0MWBCVZCX63BB85',3,1,3,'w_01M83BCDWRNCWMECH0S983ZRM0','8f515008-029f-4635-b916-3b868dd14d9f','cpu
','9a7b795a-ab8c-4cf9-84b0-ccc9a23a8c36',1795408936889,1795408936915,0,0,0,'',NULL,NULL,'',0.0,0.0,0,0,0.0,0,0,1,1,'',3);
INSERT INTO "attempts" VALUES(4,'a_01M83BCFXSA1QXXV2H92V6PZDQ',4,1,4,'w_01M83BCDWRNCWMECH0S983ZRM0','8f515008-029f-4635-b916-3b868dd14d9f','cpu
','9a7b795a-ab8c-4cf9-84b0-ccc9a23a8c36',1795408936889,1795408936931,0,0,0,'',NULL,NULL,'',0.0,0.0,0,0,0.0,9,0,1,0,'',3);
CREATE TABLE blobs (
  digest     TEXT PRIMARY KEY,
  size_bytes INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  state      INTEGER NOT NULL DEFAULT 1 CHECK (state IN (1, 2, 3))
) STRICT, WITHOUT ROWID;
INSERT INTO "blobs" VALUES('17f0520391f6ab40fba27d4f75d8c62a3f44e4c54b697da1e3adc71a8b9d3f19',42,1795408939936,1);
INSERT INTO "blobs" VALUES('7e49816247bec2809793d3e8c1b4e1f98f92aa355bfd7f3340b89793917712b6',145,1795408936840,1);
INSERT INTO "blobs" VALUES('c0119b9c38147ff8ad48627d8c883612256ea54c1f6df1c1c0ff8b9d57b03d6c',42,1795408938421,1);
INSERT INTO "blobs" VALUES('c924b7af02ecbae8261b1006aacd6264144aafbdff5ef028f5642908eb252c86',1000,1795408936833,1);
INSERT INTO "blobs" VALUES('de8f3375fc786017cfb8fe9f4e0196e6c9305bbd6bbf408edf887f63ac56eace',821,1795408936848,1);
CREATE TABLE checkpoints (
  job_id     INTEGER NOT NULL REFERENCES jobs (id),
  sequence   INTEGER NOT NULL,
  step       INTEGER NOT NULL,
  digest     TEXT    NOT NULL,
  size_bytes INTEGER NOT NULL,
  fence      INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (job_id, sequence)
) STRICT, WITHOUT ROWID;
INSERT INTO "checkpoints" VALUES(3,1,1,'c0119b9c38147ff8ad48627d8c883612256ea54c1f6df1c1c0ff8b9d57b03d6c',42,3,1795408938424);
INSERT INTO "checkpoints" VALUES(3,2,2,'17f0520391f6ab40fba27d4f75d8c62a3f44e4c54b697da1e3adc71a8b9d3f19',42,3,1795408939939);
CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "counters" VALUES('fence',4);
CREATE TABLE devices (
  worker_id    TEXT    NOT NULL REFERENCES workers (id),
  id           TEXT    NOT NULL,
  backend      INTEGER NOT NULL,
  model        TEXT    NOT NULL,
  memory_bytes INTEGER NOT NULL,
  slots        INTEGER NOT NULL,
  PRIMARY KEY (worker_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "devices" VALUES('w_01M83BCDWRNCWMECH0S983ZRM0','cpu',1,'Intel(R) Xeon(R) Processor',25276063744,2);
CREATE TABLE events (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id      INTEGER NOT NULL REFERENCES jobs (id),
  job_seq     INTEGER NOT NULL,
  time_ms     INTEGER NOT NULL,
  type        INTEGER NOT NULL CHECK (type BETWEEN 1 AND 4),
  from_state  INTEGER,
  to_state    INTEGER NOT NULL,
  reason      INTEGER NOT NULL DEFAULT 0,
  failure     TEXT    NOT NULL DEFAULT '',
  exit_status INTEGER,
  signal      INTEGER,
  attempt     INTEGER NOT NULL DEFAULT 0,
  attempt_uid TEXT    NOT NULL DEFAULT '',
  fence       INTEGER NOT NULL DEFAULT 0,
  worker_id   TEXT    NOT NULL DEFAULT '',
  message     TEXT    NOT NULL DEFAULT '',
  reinstated  INTEGER NOT NULL DEFAULT 0,
  not_before_ms INTEGER NOT NULL DEFAULT 0,
  progress    BLOB,
  log_bytes   INTEGER NOT NULL DEFAULT 0,
  cp_sequence INTEGER, cp_step INTEGER, cp_digest TEXT, cp_size INTEGER,
  CHECK ((type = 1) = (job_seq > 0))
) STRICT;
INSERT INTO "events" VALUES(1,1,1,1795408936769,1,NULL,3,0,'',NULL,NULL,0,'',0,'','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(2,2,1,1795408936769,1,NULL,3,0,'',NULL,NULL,0,'',0,'','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(3,1,2,1795408936774,1,3,4,0,'',NULL,NULL,1,'a_01M83BCFT6WRH36D0DMRFFCE87',1,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(4,2,2,1795408936774,1,3,4,0,'',NULL,NULL,1,'a_01M83BCFT6AWWQ2MXFKGJM2R5F',2,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(5,1,3,1795408936815,1,4,5,0,'',NULL,NULL,1,'a_01M83BCFT6WRH36D0DMRFFCE87',1,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(6,2,3,1795408936820,1,4,5,0,'',NULL,NULL,1,'a_01M83BCFT6AWWQ2MXFKGJM2R5F',2,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(7,2,4,1795408936829,1,5,8,1,'the engine rejected the input',10,NULL,1,'a_01M83BCFT6AWWQ2MXFKGJM2R5F',2,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(8,1,4,1795408936853,1,5,7,0,'',NULL,NULL,1,'a_01M83BCFT6WRH36D0DMRFFCE87',1,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(9,3,1,1795408936889,1,NULL,3,0,'',NULL,NULL,0,'',0,'','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(10,4,1,1795408936889,1,NULL,3,0,'',NULL,NULL,0,'',0,'','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(11,3,2,1795408936889,1,3,4,0,'',NULL,NULL,1,'a_01M83BCFXSH0MWBCVZCX63BB85',3,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(12,4,2,1795408936889,1,3,4,0,'',NULL,NULL,1,'a_01M83BCFXSA1QXXV2H92V6PZDQ',4,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(13,3,3,1795408936915,1,4,5,0,'',NULL,NULL,1,'a_01M83BCFXSH0MWBCVZCX63BB85',3,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(14,4,3,1795408936931,1,4,5,0,'',NULL,NULL,1,'a_01M83BCFXSA1QXXV2H92V6PZDQ',4,'w_01M83BCDWRNCWMECH0S983ZRM0','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(15,4,0,1795408937916,3,NULL,5,0,'',NULL,NULL,1,'a_01M83BCFXSA1QXXV2H92V6PZDQ',4,'','',0,0,X'',9,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(16,3,0,1795408938424,4,NULL,5,0,'',NULL,NULL,1,'a_01M83BCFXSH0MWBCVZCX63BB85',3,'','',0,0,X'',0,1,1,'c0119b9c38147ff8ad48627d8c883612256ea54c1f6df1c1c0ff8b9d57b03d6c',42);
INSERT INTO "events" VALUES(17,3,0,1795408938811,2,NULL,5,0,'',NULL,NULL,1,'a_01M83BCFXSH0MWBCVZCX63BB85',3,'','',0,0,X'0A057374657073100118A08D062A0608AA888FD806',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(18,3,0,1795408939939,4,NULL,5,0,'',NULL,NULL,1,'a_01M83BCFXSH0MWBCVZCX63BB85',3,'','',0,0,X'',0,2,2,'17f0520391f6ab40fba27d4f75d8c62a3f44e4c54b697da1e3adc71a8b9d3f19',42);
INSERT INTO "events" VALUES(19,3,0,1795408940912,2,NULL,5,0,'',NULL,NULL,1,'a_01M83BCFXSH0MWBCVZCX63BB85',3,'','',0,0,X'0A057374657073100218A08D0622130A08726573696475616C11000000000000F03F2A0608AB888FD806',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(20,5,1,1795408940929,1,NULL,3,0,'',NULL,NULL,0,'',0,'','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(21,6,1,1795408940961,1,NULL,3,0,'',NULL,NULL,0,'',0,'','',0,0,X'',0,NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(22,6,2,1795408940998,1,3,9,0,'',NULL,NULL,0,'',0,'','',0,0,X'',0,NULL,NULL,NULL,NULL);
CREATE TABLE job_inputs (
  job_id     INTEGER NOT NULL REFERENCES jobs (id),
  slot       TEXT    NOT NULL,
  digest     TEXT    NOT NULL,
  size_bytes INTEGER NOT NULL,
  PRIMARY KEY (job_id, slot)
) STRICT, WITHOUT ROWID;
CREATE TABLE job_labels (
  job_id INTEGER NOT NULL REFERENCES jobs (id),
  key    TEXT    NOT NULL,
  value  TEXT    NOT NULL,
  PRIMARY KEY (job_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "job_labels" VALUES(1,'project','thesis');
CREATE TABLE jobs (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  uid             TEXT    NOT NULL UNIQUE,
  name            TEXT    NOT NULL,
  kind            TEXT    NOT NULL,
  state           INTEGER NOT NULL CHECK (state BETWEEN 1 AND 9),
  reason          INTEGER NOT NULL DEFAULT 0,
  message         TEXT    NOT NULL DEFAULT '',
  exit_status     INTEGER,
  signal          INTEGER,
  priority        INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
  pool            TEXT    NOT NULL,
  placement       TEXT    NOT NULL,
  device          INTEGER NOT NULL CHECK (device BETWEEN 1 AND 3),
  gpus            INTEGER NOT NULL CHECK (gpus BETWEEN 0 AND 16),
  memory_bytes    INTEGER NOT NULL CHECK (memory_bytes >= 0),
  max_runtime_ms  INTEGER NOT NULL CHECK (max_runtime_ms > 0),
  not_before_ms   INTEGER NOT NULL DEFAULT 0,
  ready           INTEGER NOT NULL CHECK (ready IN (0, 1)),
  attempts        INTEGER NOT NULL DEFAULT 0,
  max_attempts    INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 10),
  grants          INTEGER NOT NULL DEFAULT 0,
  crashes         INTEGER NOT NULL DEFAULT 0,
  gpu_ooms        INTEGER NOT NULL DEFAULT 0,
  host_ooms       INTEGER NOT NULL DEFAULT 0,
  resume          INTEGER NOT NULL CHECK (resume IN (0, 1)),
  checkpoints_kept INTEGER NOT NULL CHECK (checkpoints_kept BETWEEN 1 AND 16),
  fence           INTEGER NOT NULL DEFAULT 0,
  open_attempt    INTEGER REFERENCES attempts (id),
  avoid_device    TEXT    NOT NULL DEFAULT '',
  revision        INTEGER NOT NULL,
  job_seq         INTEGER NOT NULL,
  created_ms      INTEGER NOT NULL,
  started_ms      INTEGER NOT NULL DEFAULT 0,
  ended_ms        INTEGER NOT NULL DEFAULT 0,
  cancel_requested_ms INTEGER NOT NULL DEFAULT 0,
  spec            BLOB    NOT NULL,
  summary         TEXT    NOT NULL DEFAULT '',
  CONSTRAINT open_attempt_and_state_go_together
    CHECK ((open_attempt IS NOT NULL) = (state IN (4, 5, 6))),
  CONSTRAINT attempts_within_limits
    CHECK (attempts BETWEEN 0 AND max_attempts AND attempts <= grants
           AND grants <= max_attempts + 20),
  CONSTRAINT a_final_job_has_ended CHECK ((ended_ms > 0) = (state >= 7))
) STRICT;
INSERT INTO "jobs" VALUES(1,'j_01M83BCFT11BDGJM7HAA1Z5TZ8','emit','test',7,0,'',NULL,NULL,0,'default','test/1/0/0',1,0,0,86400000,0,1,1,3,1,0,0,0,1,2,1,NULL,'',4,4,1795408936769,1795408936815,1795408936853,0,X'0A04656D697412110A0770726F6A65637412067468657369739A0107220508E8071007','{"action":"emit","bytes":1000}');
INSERT INTO "jobs" VALUES(2,'j_01M83BCFT18M0R687WMKHV33J9','broken','test',8,1,'the engine rejected the input',10,NULL,0,'default','test/1/0/0',1,0,0,86400000,0,1,1,3,1,0,0,0,1,2,2,NULL,'',4,4,1795408936769,1795408936820,1795408936829,0,X'0A0662726F6B656E9A01043A02080A','');
INSERT INTO "jobs" VALUES(3,'j_01M83BCFXSF8TJB5VNQVATF1XR','steps','test',5,0,'',NULL,NULL,0,'default','test/1/0/0',1,0,0,86400000,0,1,1,3,1,0,0,0,1,2,3,3,'',3,3,1795408936889,1795408936915,0,0,X'0A0573746570739A0110320E08A08D06120808011080CAB5EE01','');
INSERT INTO "jobs" VALUES(4,'j_01M83BCFXS45JPN4016CM3WKY4','long','test',5,0,'',NULL,NULL,0,'default','test/1/0/0',1,0,0,86400000,0,1,1,3,1,0,0,0,1,2,4,4,'',3,3,1795408936889,1795408936931,0,0,X'0A046C6F6E679A010812060A0408A09902','');
INSERT INTO "jobs" VALUES(5,'j_01M83BCKW1BSY7BQSFXE68P9TK','waiting','test',3,0,'',NULL,NULL,0,'default','test/1/0/0',1,0,0,86400000,0,1,0,3,0,0,0,0,1,2,0,NULL,'',1,1,1795408940929,0,0,0,X'0A0777616974696E679A010812060A0408A09902','');
INSERT INTO "jobs" VALUES(6,'j_01M83BCKX1R8K2HAAAXVJ6EDF8','cancelled','test',9,0,'',NULL,NULL,0,'default','test/1/0/0',1,0,0,86400000,0,1,0,3,0,0,0,0,1,2,0,NULL,'',2,2,1795408940961,0,1795408940998,1795408940998,X'0A0963616E63656C6C65649A01020A00','');
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('clean_shutdown',X'30');
INSERT INTO "meta" VALUES('epoch',X'31');
INSERT INTO "meta" VALUES('scrub_passed_ms',X'31373935343038393333323938');
INSERT INTO "meta" VALUES('scrub_place',X'');
INSERT INTO "meta" VALUES('store_id',X'735F30314D383342434344353331504A524D3354324E4E5331374147');
INSERT INTO "meta" VALUES('token_key',X'5B0EEB26D761B56060849F6A1A9A09A96FB86055E04D9F546F831F6FBBF55C09');
CREATE TABLE progress (
  job_id  INTEGER PRIMARY KEY REFERENCES jobs (id),
  body    BLOB    NOT NULL,
  time_ms INTEGER NOT NULL
) STRICT;
INSERT INTO "progress" VALUES(3,X'0A057374657073100218A08D0622130A08726573696475616C11000000000000F03F2A0608AB888FD806',1795408940912);
CREATE TABLE requests (
  request_id  TEXT PRIMARY KEY,
  method      TEXT    NOT NULL,
  body_sha256 TEXT    NOT NULL,
  response    TEXT    NOT NULL,
  expires_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "requests" VALUES('122431c4-5071-4e97-a580-7c46e0459de6','SubmitJobs','ed253ca397e6c149fe9831c0cd83a6f5f8eb97639034f5e7503d26fbd9cc2471','j_01M83BCFT11BDGJM7HAA1Z5TZ8
j_01M83BCFT18M0R687WMKHV33J9
',1796013736769);
INSERT INTO "requests" VALUES('770644b1-92df-47f1-a854-cba9a5088b30','SubmitJobs','1631cddd48b7b251bbed6e7942a4738f382c33cdc9523d655cba25180ffb9529','j_01M83BCFXSF8TJB5VNQVATF1XR
j_01M83BCFXS45JPN4016CM3WKY4
',1796013736889);
INSERT INTO "requests" VALUES('78d16dde-b857-4458-9bc1-2b895f200980','SubmitJobs','d0758288ca5789da7090e96626ae71cb9324e79129aecb6baa41034cc62bfd8c','j_01M83BCKW1BSY7BQSFXE68P9TK
',1796013740929);
INSERT INTO "requests" VALUES('ea20e532-5873-4f6b-b621-5f8b4ad45d75','SubmitJobs','5a9771edd0a96a5d5d0f9bb1d38b21127b71884314f82165fad16811b9513dd2','j_01M83BCKX1R8K2HAAAXVJ6EDF8
',1796013740961);
CREATE TABLE uploads (
  upload_id       TEXT PRIMARY KEY,
  digest          TEXT    NOT NULL,
  size_bytes      INTEGER NOT NULL,
  committed_bytes INTEGER NOT NULL,
  touched_ms      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE workers (
  id           TEXT PRIMARY KEY,
  incarnation  TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  version      TEXT    NOT NULL,
  pool         TEXT    NOT NULL,
  kinds        TEXT    NOT NULL,
  last_seen_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "workers" VALUES('w_01M83BCDWRNCWMECH0S983ZRM0','8f515008-029f-4635-b916-3b868dd14d9f','bench','0.1.0','default','gw
mosfet
thermal
test
',1795408934813);
CREATE TRIGGER counters_only_rise BEFORE UPDATE ON counters WHEN NEW.value < OLD.value
BEGIN SELECT RAISE(ABORT, 'I4: a counter may not be lowered'); END;
CREATE INDEX jobs_ready ON jobs (pool, placement, priority DESC, id) WHERE state = 3 AND ready = 1;
CREATE INDEX jobs_delayed ON jobs (not_before_ms) WHERE state = 3 AND ready = 0;
CREATE INDEX jobs_live ON jobs (state, pool) WHERE state < 7;
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE TRIGGER jobs_final_is_final BEFORE UPDATE OF state ON jobs
WHEN OLD.state >= 7 AND NEW.state <> OLD.state
BEGIN SELECT RAISE(ABORT, 'I3: a final state is never left'); END;
CREATE TRIGGER jobs_fence_only_rises BEFORE UPDATE OF fence ON jobs WHEN NEW.fence < OLD.fence
BEGIN SELECT RAISE(ABORT, 'I4: a fence may not be lowered'); END;
CREATE TRIGGER jobs_change_is_numbered BEFORE UPDATE OF state ON jobs
WHEN NEW.state <> OLD.state AND NEW.job_seq <> OLD.job_seq + 1
BEGIN SELECT RAISE(ABORT, 'I8: a change of state takes the next job_seq'); END;
CREATE TRIGGER jobs_spec_stays BEFORE UPDATE OF spec, uid, kind, created_ms ON jobs
WHEN NEW.spec <> OLD.spec OR NEW.uid <> OLD.uid OR NEW.kind <> OLD.kind
     OR NEW.created_ms <> OLD.created_ms
BEGIN SELECT RAISE(ABORT, 'I1: what was submitted does not change'); END;
CREATE TRIGGER jobs_stay BEFORE DELETE ON jobs
BEGIN SELECT RAISE(ABORT, 'I1: a job is not deleted'); END;
CREATE INDEX job_labels_by_value ON job_labels (key, value, job_id);
CREATE INDEX job_inputs_by_digest ON job_inputs (digest);
CREATE UNIQUE INDEX attempts_one_open ON attempts (job_id) WHERE outcome = 0;
CREATE INDEX attempts_open_of_worker ON attempts (worker_id) WHERE outcome = 0;
CREATE INDEX attempts_by_acquire ON attempts (acquire_id);
CREATE TRIGGER attempts_fence_stays BEFORE UPDATE OF fence, job_id, uid ON attempts
WHEN NEW.fence <> OLD.fence OR NEW.job_id <> OLD.job_id OR NEW.uid <> OLD.uid
BEGIN SELECT RAISE(ABORT, 'I4: the fence of an attempt does not change'); END;
CREATE TRIGGER attempts_fence_is_newest BEFORE INSERT ON attempts
WHEN NEW.fence <> (SELECT value FROM counters WHERE name = 'fence')
BEGIN SELECT RAISE(ABORT, 'I4: a new attempt takes the newest fence'); END;
CREATE TRIGGER attempts_log_only_grows BEFORE UPDATE OF log_bytes ON attempts
WHEN NEW.log_bytes < OLD.log_bytes
BEGIN SELECT RAISE(ABORT, 'a log may not become shorter'); END;
CREATE TRIGGER attempts_stay BEFORE DELETE ON attempts
BEGIN SELECT RAISE(ABORT, 'I13: an attempt is not deleted'); END;
CREATE INDEX checkpoints_by_digest ON checkpoints (digest);
CREATE TRIGGER checkpoints_fence_is_current BEFORE INSERT ON checkpoints
WHEN NEW.fence <> (SELECT fence FROM jobs WHERE id = NEW.job_id)
     OR (SELECT state FROM jobs WHERE id = NEW.job_id) NOT IN (4, 5, 6)
BEGIN SELECT RAISE(ABORT, 'I5: a checkpoint is written by the holder of the job'); END;
CREATE INDEX artifacts_by_digest ON artifacts (digest);
CREATE TRIGGER artifacts_of_running_only BEFORE INSERT ON artifacts
WHEN (SELECT state FROM jobs WHERE id = NEW.job_id) <> 5
BEGIN SELECT RAISE(ABORT, 'I2: artefacts come with the success of a running job'); END;
CREATE TRIGGER artifacts_do_not_change BEFORE UPDATE ON artifacts
BEGIN SELECT RAISE(ABORT, 'I2: an artefact does not change'); END;
CREATE TRIGGER artifacts_do_not_go BEFORE DELETE ON artifacts
BEGIN SELECT RAISE(ABORT, 'I2: an artefact is not removed'); END;
CREATE INDEX blobs_by_age ON blobs (created_ms);
CREATE TRIGGER blobs_referenced_stay BEFORE UPDATE OF state ON blobs
WHEN NEW.state = 2 AND OLD.state <> 2 AND (
     EXISTS (SELECT 1 FROM job_inputs WHERE digest = NEW.digest)
  OR EXISTS (SELECT 1 FROM artifacts WHERE digest = NEW.digest)
  OR EXISTS (SELECT 1 FROM checkpoints WHERE digest = NEW.digest))
BEGIN SELECT RAISE(ABORT, 'I11: a referenced blob is not deleted'); END;
CREATE TRIGGER blobs_deleted_in_two_steps BEFORE DELETE ON blobs WHEN OLD.state <> 2
BEGIN SELECT RAISE(ABORT, 'I11: a blob is marked before its row goes'); END;
CREATE INDEX requests_by_age ON requests (expires_ms);
CREATE TRIGGER requests_stay_as_they_are BEFORE UPDATE ON requests
BEGIN SELECT RAISE(ABORT, 'I7: a stored answer does not change'); END;
CREATE UNIQUE INDEX events_of_job ON events (job_id, job_seq) WHERE job_seq > 0;
CREATE INDEX events_passing ON events (time_ms) WHERE type <> 1;
CREATE TRIGGER events_follow_the_job BEFORE INSERT ON events
WHEN NEW.type = 1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job_id
                                  AND job_seq = NEW.job_seq AND state = NEW.to_state)
BEGIN SELECT RAISE(ABORT, 'I8: an event says what its job is'); END;
CREATE TRIGGER events_do_not_change BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'I8: an event does not change'); END;
CREATE TRIGGER events_of_state_stay BEFORE DELETE ON events WHEN OLD.type = 1
BEGIN SELECT RAISE(ABORT, 'I8: a change of state is not forgotten'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('jobs',6);
INSERT INTO "sqlite_sequence" VALUES('events',22);
INSERT INTO "sqlite_sequence" VALUES('attempts',4);
COMMIT;
PRAGMA foreign_keys = ON;
