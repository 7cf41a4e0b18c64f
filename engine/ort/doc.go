// Package ort executes ONNX graphs with ONNX Runtime. It finds and loads the library, and provides
// sessions that read and write tensors in Go memory and can be cancelled. In comments, the engine
// is ONNX Runtime, and the binding is the Go package by which its C API is called,
// github.com/yalue/onnxruntime_go.
//
// Find looks for the library in the usual places, and Load loads it, once per process:
//
//	path, _, err := ort.Find("")
//	rt, err := ort.Load(path)
//
// A Session executes one graph. Its inputs and outputs are Values: tensors in Go memory that the
// engine reads and writes in place. Create them once, with their final shape, and use them for many
// runs. Runs neither allocate nor copy them, except scalars:
//
//	s, err := rt.NewSession(graph, ort.Options{})
//	x, err := rt.NewValue(onnx.Float, 8, 3, 224, 224)
//	y, err := rt.NewValue(onnx.Float, 8, 1000)
//	copy(ort.Data[float32](x), pixels)
//	err = s.Run(ctx, []*ort.Value{x}, []*ort.Value{y})
//	scores := y.Tensor() // 8 x 1000, the memory that the engine wrote
//
// If the shape of an output is not known before the run, pass nil: the run creates a Value, with
// one copy of the data.
//
// Options.Device selects a device other than the CPU. Values are then copied to it and back in each
// run, except those that Session.Place has given memory there.
//
// Sessions, Values and Runtimes may be used by several goroutines, as long as concurrent runs do
// not share a Value that one of them writes. The engine stops a run at the end of the node that it
// computes when the context is done. Session.Run returns a second later at most, even if the node
// takes longer.
package ort
