// Package recipe reads training files and does what they say: data, network, optimiser and schedule in, a network out.
//
//	f, err := training.Load("train.yaml", nil)
//	result, err := training.Run(ctx, f, "networks/one", training.Options{Runtime: rt})
//
// A training file names the data, which validates and which tests, the network (one that is built here, or any ONNX model), how
// samples are moved before they are learnt from, the optimiser and the schedule. Its keys are strict, as those of a study are.
// The folder is filled with
//
//	model.onnx        the network, which takes images with values in [0, 1]
//	log.csv           a row an epoch: losses, accuracies, rate, seconds
//	summary.json      what came out, and of which settings and data
//	training.yaml     the training file
//	epochs/007.onnx   the networks of single epochs, where the file asks for them
//	model.images/   sheets of what the units of networks see that learn without labels
//	checkpoint.bin    what training that was stopped goes on from; it is removed at the end
//
// Training that was stopped, or killed, goes on where its last epoch ended when it is run again, and ends with the same weights.
package recipe
