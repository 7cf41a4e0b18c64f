// Package model is a network as one uses it: images go in, layers and class scores come out.
//
// An ONNX file leaves much open that a measurement must know: which input takes the image, and whether its channels
// come first or last; how many images a run takes; which tensors belong to single samples and what shape they
// have; whether the output scores classes, by logits or by probabilities. Open finds out, from the graph where it tells
// and from dummy runs where it does not, and lets the caller decide each of them:
//
//	m, err := model.Open(rt, "resnet44.onnx", model.Options{
//		Layers:     []string{"op:Relu", "penultimate"},
//		Preprocess: preprocess,
//	})
//
// A Preprocess is a frame (the size and channels asked of a data set) and what brings values in [0, 1] to those that the
// model was trained on: a preset, the preprocessor_config.json of a Hugging Face model, or values of your own.
//
// A Session runs the graph cut down to some of the layers, and Buffers hold what one batch yields. They are made once;
// the engine writes into them, and what Layer returns is that memory:
//
//	s, err := m.NewSession(m.Layers(), true)
//	buf, err := s.NewBuffers(32)
//	err = s.Run(ctx, images, buf) // at most 32 images of c x h x w, values in [0, 1], framed as m.Frame() says
//	z := buf.Layer(0)               // n x ...
//	p, err := buf.LogProbs(nil)     // n x classes
//
// On the processor a session computes groups of convolutions, ReLUs and sums by operators of our own where they are faster; the layers are the
// same to about 1e-6 of their largest value.
//
// Models that take a fixed number of images, channels last, bytes or float64 need nothing else of the caller.
package model
