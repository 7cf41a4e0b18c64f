// Package model runs neural networks on images or audio and returns the activations of their layers
// and their class scores. It sits on package engine and knows none of the engines.
//
// A network lacks information that a measurement needs: which input takes the image, whether its
// channels come first or last, how many images a run takes, and whether the output holds class
// scores, as logits or as probabilities. Open determines these from the names and shapes of inputs,
// outputs and layers and, if the network is an ONNX graph (GraphNetwork), from its nodes. Options
// override each of them. Here rt is ONNX Runtime, and the layers are all outputs of Relu operators
// and the input of the final classifier:
//
//	net, err := rt.OpenNetwork("resnet44.onnx", ort.NetworkOptions{})
//	m, err := model.Open(ctx, net, model.Options{
//		Layers:     []string{"op:Relu", "penultimate"},
//		Preprocess: preprocess,
//	})
//
// A Preprocess is a dataset.Frame and the normalisation that converts values in [0, 1] to those
// that the model was trained on. It is a preset ("imagenet" or another name), the
// preprocessor_config.json of a Hugging Face model, or explicit values. A dataset brings samples to
// the frame, and a Session normalises them.
//
// A Session computes some of the layers. Buffers hold the outputs for
// one batch. Create them once: the engine writes into their memory, and Layer returns it:
//
//	s, err := m.NewSession(m.Layers(), true) // true: with the class scores
//	buf, err := s.NewBuffers(32)
//	err = s.Run(ctx, images, buf) // at most 32 images of c x h x w, values in [0, 1]
//	z := buf.Layer(0)             // n x ...
//	p, err := buf.LogProbs(nil)   // n x classes
//
// Models that take a fixed number of images in a run, channels last, or inputs of bytes or float64
// are supported. The comments of this package say image for what may also be a waveform or a vector
// from a file of arrays.
package model
