// Package model runs neural networks on images or audio and returns the activations of their layers
// (the tensors of the graph that are measured) and their class scores.
//
// An ONNX file lacks information that a measurement needs: which input takes the image, whether its
// channels come first or last, how many images a run takes, the shape of each layer for one sample,
// and whether the output holds class scores, as logits or as probabilities. Open determines these
// from the graph and from runs on dummy inputs. Options override each of them. Here rt is ONNX
// Runtime, the engine that runs the models, and the layers are all outputs of Relu operators and
// the input of the final classifier:
//
//	m, err := model.Open(rt, "resnet44.onnx", model.Options{
//		Layers:     []string{"op:Relu", "penultimate"},
//		Preprocess: preprocess,
//	})
//
// A Preprocess is a dataset.Frame (the size and channels of images, or the rate and length of
// waveforms) and the normalisation that converts values in [0, 1] to those that the model was
// trained on. It is a preset ("imagenet" or another name), the preprocessor_config.json of
// a Hugging Face model, or explicit values. A dataset brings samples to the frame, and a Session
// normalises them.
//
// A Session runs the part of the graph that some of the layers need. Buffers hold the outputs for
// one batch. Create them once: the engine writes into their memory, and Layer returns it:
//
//	s, err := m.NewSession(m.Layers(), true) // true: with the class scores
//	buf, err := s.NewBuffers(32)
//	err = s.Run(ctx, images, buf) // at most 32 images of c x h x w, values in [0, 1]
//	z := buf.Layer(0)             // n x ...
//	p, err := buf.LogProbs(nil)   // n x classes
//
// On the CPU a session uses native operators, which replace slower ones of ONNX Runtime (package
// internal/accel), for groups of convolutions, ReLUs and sums. Layers then change by about 1e-6 of their
// largest value.
//
// Models that take a fixed number of images in a run, channels last, or inputs of bytes or float64
// are supported. The comments of this package say image for what may also be a waveform or a vector
// from a file of arrays.
package model
