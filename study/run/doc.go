// Package run executes plans: it feeds batches to models and accumulators, scores what they
// gathered, and runs procedures.
//
// A pass reads each sample once. Samples are decoded and transformed on goroutines beside the
// engine; each model runs the clean batch once and the batch under each view; the tasks of a view
// share the cores. States are saved now and then, so that a run that is stopped goes on where it
// was. A cell that fails is given up, and the rest goes on.
package run
