// Package run executes plans (studies whose models and data are open). It feeds batches to models,
// and their activations to accumulators, the running sums of measures. It computes the scores, and
// runs procedures: measures that work in steps and save checkpoints, such as the training of probes
// or the inversion of representations.
//
//	result, err := run.Run(ctx, study, "runs/first", plan.Options{Runtime: rt})
//
// A pass over the data reads each sample once. Goroutines decode and transform samples while the
// engine (ONNX Runtime) runs. Each model runs on the clean (not transformed) batch once, and on the
// batch under each view. A view is a transformation with one value of its parameter, in one trial
// (a repetition of all random draws). The tasks of a view are its accumulators, one for each
// measure and layer; they are updated in parallel. States (saved accumulators) are written at
// intervals, so that a stopped run can be resumed. A cell, the scores of a measure for a model,
// data and view, may fail: that is recorded, and the run continues with the others.
package run
