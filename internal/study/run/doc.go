// Package run executes plans. It feeds batches to models, and their activations to accumulators. It
// computes the scores, and runs procedures. Estimate predicts what a run costs.
//
//	result, err := run.Run(ctx, study, "runs/first", plan.Options{Runtime: rt})
//
// The words are those of package plan. Goroutines decode and transform samples while the engine
// runs. Each model runs on the clean batch once, and on the batch under each view. The tasks of a
// view are updated in parallel. States, the saved accumulators, are written at intervals, so that a
// stopped run can be resumed. A cell may fail: that is recorded, and the run continues with the
// others.
package run
