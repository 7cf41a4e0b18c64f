// Package ort executes ONNX graphs with ONNX Runtime: finding its library, sessions, bound tensors,
// cancelling.
//
// Find looks for the library where an installation may keep it, and Load loads it, once in a
// process:
//
//	path, _, err := ort.Find("")
//	rt, err := ort.Load(path)
//
// A Session executes one graph. Its inputs and outputs are Values: tensors in Go's memory that the
// engine reads and writes in place. Make them once, with the shape that they will have, and run as
// often as needed; nothing is allocated or copied from one run to the next:
//
//	s, err := rt.NewSession(graph, ort.Options{})
//	x, err := rt.NewValue(onnx.Float, 8, 3, 224, 224)
//	y, err := rt.NewValue(onnx.Float, 8, 1000)
//	copy(ort.Data[float32](x), pixels)
//	err = s.Run(ctx, []*ort.Value{x}, []*ort.Value{y})
//	scores := y.Tensor() // 8 x 1000, the memory that the engine wrote
//
// Where the shape of an output is not known before the run, pass nil in its place and the run puts
// a new Value there, at the price of one copy.
//
// Sessions, Values and Runtimes may be used by several goroutines, as long as no two runs at a time
// share a Value that one of them writes. A run ends within a fraction of a second after its context
// does: at the end of the node that is being computed.
package ort
