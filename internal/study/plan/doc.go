// Package plan opens the models and data of a study and lists its cells, the units of work.
//
// A cell is a measure for one model, data set, value of a transformation and trial; its scores are
// stored in one record. Its key is a hash of all inputs that its scores depend on. A cell of a
// measure with accumulators has a task for each layer, the work of one accumulator. (On a cluster,
// task has another meaning: one call of the program.) The function Passes groups tasks into passes
// over the data, so that their accumulators fit the memory bound of the study: a pass reads each
// sample once. A cell of a procedure has no tasks. A view is one way of transforming the input: a
// transformation with one value of its parameter, in one trial.
//
// The samples of a data set are read in a random order, which depends on the study only. It is
// divided into blocks of consecutive samples (measure.Layout), and a shard, the part of one
// process, consists of whole blocks. Ready-made pairs are data that hold each sample clean and
// transformed, so that the study needs no transformation.
//
//	p, err := plan.New(ctx, study, plan.Options{Runtime: rt})
//
// A plan does not run the study; package run does.
package plan
