// Package recipe trains networks that are described by training files. A training file names the
// data, the network, the optimiser and the schedule; the result is an ONNX model.
//
//	f, err := recipe.Load("train.yaml", nil)
//	result, err := recipe.Run(ctx, f, "networks/one", recipe.Options{Runtime: rt})
//
// The network is built by package train or read from an ONNX model. Unknown keys of the file are
// errors, as in a study file (package internal/study/spec). The output folder holds
//
//	model.onnx        the network, which takes images in [0, 1] or waveforms in [-1, 1]
//	log.csv           a row for each epoch: losses, accuracies, learning rate, seconds
//	summary.json      results, with a hash of settings, data and initial weights
//	training.yaml     the training file
//	epochs/007.onnx   networks of single epochs, if the file asks for them
//	model.pictures/   filters of networks that are trained without labels, side by side in one image
//	                  for each layer
//	checkpoint.bin    the state of an interrupted training; removed at the end (of an autoencoder
//	                  checkpoint-1.bin and so on, one for each layer)
//
// A file with the key vary describes several trainings, one for each combination of the values that
// it lists. RunAll gives each a folder of its own, and writes the results of all to one CSV file
// (spec.RunsFile).
//
// An interrupted training resumes after its last epoch when it is run again. Its final weights are
// those of an uninterrupted training. A convolutional deep belief network has no checkpoint: its
// training starts again.
package recipe
