// Package plan opens the models and data of a study and lists its cells, the units of work.
//
// A cell is a measure for one model, data set, value of a transformation and trial; its scores are
// stored in one record. Its key is a hash of all inputs that its scores depend on. A cell of a
// measure with accumulators (running sums that are updated batch by batch) has a task for each
// layer. Passes groups tasks into passes over the data, so that their accumulators fit the memory
// bound. A cell of a procedure (a measure that works in steps on samples in memory, such as the
// training of probes) has no tasks. These tasks are no tasks of a cluster, which are calls of the
// program.
//
//	p, err := plan.New(ctx, study, plan.Options{Runtime: rt})
//
// A plan does not run the study; package run does.
package plan
