// Package run executes plans: it feeds batches to models and accumulators, computes the scores, and
// runs procedures.
//
//	result, err := run.Run(ctx, study, "runs/first", plan.Options{Runtime: rt})
//
// A pass reads each sample once. Goroutines decode and transform samples while the engine runs. Each
// model runs on the clean batch once, and on the batch under each view. The tasks of a view share the
// cores. States are saved at intervals, so that a stopped run can be resumed. A cell that fails is
// recorded, and the run continues with the others.
package run
