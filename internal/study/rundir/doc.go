// Package rundir reads and writes run folders: records of cells, states of unfinished cells,
// failures, tables and the record of the run. A cell is a measure of one model, data set,
// transformation value and trial; a shard is a part of the samples that one process measures.
//
//	study.yaml         the study as resolved, with the hashes of models and data
//	run.json           what was run, skipped, unreadable and failed
//	cells/KEY.json     a finished cell, written whole or not at all
//	states/            of unfinished cells: the saved running sums (accumulators) or, of measures
//	                   that work in steps (procedures), checkpoints
//	shared/            checkpoints that several cells of a procedure share
//	failures/          what failed, and why
//	pictures/          contact sheets, of several images each, for the report
//	aside/             damaged files and files in the place of the run's own, moved there
//	scores.csv, scores.parquet, samples.parquet, units.parquet, curves.parquet
//	                   tables: scores, values of samples, scores of units, their tuning curves
//
// A Writer writes the folder of a run. Merge completes a folder from the states of shards, runs on
// parts of the samples. Check finds damaged files, and foreign ones: not of a run, or misnamed.
// ReadResult returns scores as rows, and ReadCells as cells:
//
//	result, err := rundir.ReadResult("runs/first")
//	cells, record, err := rundir.ReadCells("runs/first")
package rundir
