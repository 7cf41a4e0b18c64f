// Package rundir reads and writes run folders: records of cells, states of what is unfinished,
// failures, tables and the record of the run.
//
//	study.yaml         the study as resolved, with the hashes of models and data
//	run.json           what was run, skipped, unreadable and failed
//	cells/KEY.json     a finished cell, written whole or not at all
//	states/            accumulators and checkpoints of unfinished cells
//	failures/          what failed, and why
//	scores.csv, scores.parquet, samples.parquet, units.parquet, curves.parquet
//
// A Writer keeps what a run finds; Merge completes a folder from the states of shards; Check finds
// what is wrong with one; ReadResult and ReadCells read it.
package rundir
