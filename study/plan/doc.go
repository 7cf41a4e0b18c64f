// Package plan opens the models and the data of a study and lists the cells that it asks for.
//
// A cell is what one record of a run holds: a measure for a model, data, a value of a
// transformation and a trial. Its key is a hash of all that its scores depend on. Cells whose
// measures accumulate have tasks, one for each layer; Passes groups these into walks over the data
// whose accumulators fit the memory bound. Cells of a procedure work by themselves.
//
//	p, err := plan.New(ctx, study, plan.Options{Runtime: rt})
//	costs, err := p.Cost(ctx, options)
//
// A plan runs nothing but the batches by which Cost measures the speed of the engine.
package plan
