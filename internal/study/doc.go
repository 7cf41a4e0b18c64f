// Package study measures models on data under transformations as a study file says, and stores the
// results in a run folder.
//
//	// rt is ONNX Runtime, loaded by package ort.
//	s, err := study.Load("study.yaml", nil)
//	result, err := study.Run(ctx, s, "runs/first", study.Options{Runtime: rt})
//	for _, row := range result.Rows {
//		fmt.Println(row.Model, row.Layer, row.Transform, row.Statistic, row.Value)
//	}
//
// The key of a cell is a hash of all that its scores depend on. So a run that was stopped, or a
// study that was extended, computes only what is missing. Package plan explains the words.
//
// # Steps of a run
//
//	Load, Parse    read the file strictly: each mistake is an error with its line and column
//	NewPlan        opens models and data, lists the cells, and records what does not apply
//	Run            groups the cells of measures into passes that fit the memory bound. A pass reads
//	               each sample once, runs the models on the untransformed (clean) batch once for all
//	               transformations and measures, and saves its states regularly. Procedures run after
//	               the passes, with checkpoints
//	Merge          completes the results of shards, and of runs of some of the models
//
// Every random draw comes from a generator of its own. That of a transformation is keyed by five
// values: the study's seed, the data's name, the sample, the transformation's name and the trial.
// The generator of another draw is keyed by those of the five that apply to it. So scores depend on
// the study alone: not on batches, threads, shards, or interruptions of the run.
//
// # The run folder
//
// Package results describes it. ReadResult and ReadCells read it; Check finds damaged files.
//
// # Without a file
//
// Measure computes measures of a model, and Compare comparisons of two models, in memory and
// without a run folder:
//
//	quarter := transform.Rotate{Angle: transform.Fixed(90)}
//	found, err := study.Measure(ctx, m, data, quarter, seis.New(seis.Defaults()))
package study
