// Package results reads and writes run folders.
//
//	study.yaml         the study as resolved, with the hashes of models and data
//	run.json           what was run, skipped, unreadable and failed
//	cells/             logs of the records of finished cells; see package store
//	states/            logs of the states of unfinished cells
//	failures/          what failed, and why
//	pictures.zip       contact sheets for the report; files in pictures/ if the study asks for pictures
//	aside/             damaged files and files in the place of the run's own, moved there
//	scores.csv, scores.parquet, samples.parquet, units.parquet, curves.parquet
//	                   tables: scores, values of samples, scores of units, their tuning curves
//	failures.csv, failure-groups.csv, groups.csv
//	                   samples that models get wrong, groups that fail more often, groups of the data
//
// A Writer writes the folder of a run. Merge completes a folder from the states of shards. Check
// finds damaged and foreign files and records. ReadResult returns scores as rows, and ReadCells as
// cells:
//
//	result, err := results.ReadResult("runs/first")
//	cells, record, err := results.ReadCells("runs/first")
package results
