package ort

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// minUnpacked is a size in bytes. A session whose graph has a Gemm with a weight of at least this
// size does not pack its weights: to pack is to copy them in an order that suits matrix products.
// That saves time if each element serves many rows, but a fully connected layer has one row for
// each sample. Without packing, the VGG-11 takes 0.4 GiB less memory and some 4 % more processor
// time.
const minUnpacked = 64 << 20

func hasLargeGemm(m *onnx.Model, weights []onnx.Weight) bool {
	large := map[string]bool{}
	for _, w := range weights {
		large[w.Name] = len(w.Data) >= minUnpacked
	}
	return slices.ContainsFunc(m.Nodes(), func(n *pb.NodeProto) bool {
		return n.GetOpType() == "Gemm" && len(n.Input) > 1 && large[n.Input[1]]
	})
}

// minShared is the smallest size in bytes of an initializer that a session shares with its graph.
const minShared = 1 << 12

type sharedWeights struct {
	capi   *capi          // functions of ONNX Runtime's C API
	values []pointer      // OrtValues
	pinned runtime.Pinner // of the elements and the names
}

// share makes the sessions of these options use the weights as the initializers of a graph that
// lacks their elements (see onnx.Model.Detached). With onCPU the engine computes with the elements
// themselves. On other devices only its optimiser of graphs reads them, and the session copies the
// initializers of the optimised graph.
func (r *Runtime) share(options *binding.SessionOptions, weights []onnx.Weight, onCPU bool) (*sharedWeights, error) {
	s := &sharedWeights{capi: r.capi}
	if len(weights) == 0 {
		return s, nil
	}
	names := make([]*byte, len(weights))
	for i, w := range weights {
		name := append([]byte(w.Name), 0)
		names[i] = &name[0]
		s.pinned.Pin(names[i])
		if err := s.add(w); err != nil {
			s.release()
			return nil, fmt.Errorf("initializer %q: %w", w.Name, err)
		}
	}
	err := r.capi.err(r.capi.addExternal(optionsHandle(options), &names[0], &s.values[0], uintptr(len(names))))
	for i := 0; onCPU && err == nil && i < len(weights); i++ {
		err = r.capi.err(r.capi.addInitializer(optionsHandle(options), weights[i].Name, s.values[i]))
	}
	if err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

func (s *sharedWeights) add(w onnx.Weight) error {
	s.pinned.Pin(&w.Data[0])
	const deviceAllocator, defaultMemory = 0, 0 // OrtDeviceAllocator, OrtMemTypeDefault
	var memory, value pointer
	if err := s.capi.err(s.capi.cpuMemory(deviceAllocator, defaultMemory, &memory)); err != nil {
		return err
	}
	defer s.capi.releaseMemory(memory)
	err := s.capi.err(s.capi.wrapTensor(memory, pointer(&w.Data[0]), uintptr(len(w.Data)), unsafe.SliceData(w.Shape), uintptr(len(w.Shape)), int32(w.Type), &value))
	if err == nil {
		s.values = append(s.values, value)
	}
	return err
}

// Their session must have ended.
func (s *sharedWeights) release() {
	if s == nil {
		return
	}
	for _, value := range s.values {
		s.capi.releaseValue(value)
	}
	s.values = nil
	s.pinned.Unpin()
}
