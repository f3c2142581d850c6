-- Version 1. Later versions are steps in migrations.py; this file is never edited after a release.

CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- Where records come from: a hierarchy (this node provides) or a source (this node harvests).
CREATE TABLE origins (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('hierarchy', 'source')),
  name TEXT NOT NULL,
  settings TEXT NOT NULL DEFAULT '{}',
  state TEXT NOT NULL DEFAULT '{}',
  UNIQUE (kind, name)
);

-- seq moves with every change and orders both the change feed and every OAI list.
-- Blobs come last: a scan over the narrow columns does not touch their pages.
CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  origin INTEGER NOT NULL REFERENCES origins (id),
  identifier TEXT NOT NULL,
  datestamp INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  sets TEXT NOT NULL,
  language TEXT NOT NULL,
  length INTEGER NOT NULL,
  resource INTEGER NOT NULL,
  digest BLOB NOT NULL,
  metadata BLOB NOT NULL,
  properties BLOB NOT NULL,
  raw BLOB NOT NULL,
  vector BLOB,
  positions BLOB,
  fields BLOB NOT NULL
);
CREATE UNIQUE INDEX records_identifier ON records (identifier, origin);
CREATE UNIQUE INDEX records_seq ON records (seq);
CREATE INDEX records_resource ON records (resource) WHERE resource != 0;

-- The first seq of each second in which something was committed: what turns from= and until= into seqs.
CREATE TABLE ticks (datestamp INTEGER PRIMARY KEY, seq INTEGER NOT NULL);

CREATE TABLE sets (
  id INTEGER PRIMARY KEY,
  origin INTEGER NOT NULL REFERENCES origins (id),
  spec TEXT NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  UNIQUE (spec, origin)
);
-- Rows are only ever added: one whose record has moved on to another seq no longer joins, and is swept later.
CREATE TABLE membership (set_id INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (set_id, seq)) WITHOUT ROWID;

-- What the crawler saw last: the state that an unchanged file is compared with.
CREATE TABLE files (
  origin INTEGER NOT NULL REFERENCES origins (id),
  path TEXT NOT NULL,
  resource TEXT NOT NULL,
  size INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  etag TEXT NOT NULL,
  digest TEXT NOT NULL,
  media_type TEXT NOT NULL,
  state TEXT NOT NULL,
  policy TEXT NOT NULL,
  PRIMARY KEY (origin, path)
) WITHOUT ROWID;

CREATE TABLE failures (
  origin INTEGER NOT NULL REFERENCES origins (id),
  place TEXT NOT NULL,
  stage TEXT NOT NULL,
  reason TEXT NOT NULL,
  raw BLOB NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (origin, place, stage)
);

-- The journal: every crawl and every harvest, with what came of it.
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  origin INTEGER NOT NULL REFERENCES origins (id),
  kind TEXT NOT NULL,
  started REAL NOT NULL,
  finished REAL,
  outcome TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX runs_origin ON runs (origin, id);
