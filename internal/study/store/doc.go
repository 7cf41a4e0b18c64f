// Package store keeps records in logs that several processes write at once.
//
// A record has a key, a version, a body and named parts. Of the records of a key the one with the
// largest version counts. The store does not know what bodies and parts hold.
//
// A store is a folder of logs NAME.log. Each process appends to a log of its own, so that none
// needs a lock, also on a network file system. An append that fails is cut off. What a kill or a
// loss of power leaves at the end of a log is not read, and no process appends to that log again.
//
// # Format
//
// A log begins with the line "noether log 1\n". Frames follow, of a header of 16 bytes and a
// payload. Numbers are little endian, checksums are CRC-32C (Castagnoli).
//
//	4 bytes  "\x93nod" for data, "\x93nor" for a record
//	4 bytes  size of the payload
//	4 bytes  checksum of the payload
//	4 bytes  checksum of the 12 bytes before
//
// A data frame holds at most 1 MiB of one part. A record frame follows the data frames of the
// record's parts, which are in order. Its payload is
//
//	8 bytes  version
//	2 bytes  size of the key, then the key
//	1 byte   number of parts, and for each
//	         1 byte   size of the name, then the name
//	         8 bytes  size of the part, which is that of its data frames
//	the rest body
//
// After a damaged stretch a reader continues at the next header whose checksum is right.
//
// # Moving records
//
// Compact gathers the records of several logs in one. Since a log may belong to a process that
// still runs, it is first renamed, then read to its end, and removed when its records are in the
// other log. A process opens its log by name after each append. If the log is gone, it writes the
// same records into a new log. So whichever comes first, each record is in a log. Locks, where
// there are any, only spare processes this work.
//
// A process removes a log only if each of its records was dropped, or is superseded by one that the
// process itself has synced, in a log that still has its name after the removed one was taken. What
// another process has appended does not count: it may be cut off, or be removed for a copy of ours.
package store
