// Package recipe trains networks as training files say: data, network, optimiser and schedule in,
// an ONNX model out.
//
//	f, err := recipe.Load("train.yaml", nil)
//	result, err := recipe.Run(ctx, f, "networks/one", recipe.Options{Runtime: rt})
//
// A training file names the training, validation and test data, the network (built here, or any
// ONNX model), the augmentation, the optimiser and the schedule. Unknown keys are errors, as in a
// study file. The output folder holds
//
//	model.onnx        the network, which takes images with values in [0, 1]
//	log.csv           a row for each epoch: losses, accuracies, learning rate, seconds
//	summary.json      results, settings and data
//	training.yaml     the training file
//	epochs/007.onnx   networks of single epochs, if the file asks for them
//	model.pictures/   contact sheets of the filters of networks that are trained without labels
//	checkpoint.bin    the state of an interrupted training; removed at the end
//
// A training that was interrupted resumes after its last epoch when it is run again, and ends with
// the same weights.
package recipe
