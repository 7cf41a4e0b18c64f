package ort

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/internal/accel"
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

// minShared is the smallest size in bytes of an initializer that may be shared with the graph.
const minShared = 1 << 12

type sharedWeights struct {
	capi   *capi          // functions of ONNX Runtime's C API
	values []pointer      // OrtValues
	pinned runtime.Pinner // of the elements and the names
}

// keepsWeight has the standard operators, and the position of an input, of which the engine's
// optimiser leaves a constant as it is. In one of another operator, such as an addend, it may
// transpose the elements under the same name, to move a transposition past the operator. A session
// that computed with the elements of the graph would then have wrong results, without an error if
// the axes are of equal length.
var keepsWeight = map[string]int{"Conv": 1, "ConvTranspose": 1, "Gather": 0, "Gemm": 1, "MatMul": 1}

// unchanged returns the initializers that only such inputs read, or operators of package accel, which
// the optimiser does not know.
func unchanged(m *onnx.Model) map[string]bool {
	keeps := map[string]bool{}
	for _, w := range m.Proto().Graph.Initializer {
		keeps[w.GetName()] = true
	}
	for _, n := range m.Nodes() {
		at, known := keepsWeight[n.GetOpType()]
		switch {
		case accel.IsNative(n):
		case known && onnx.IsStandard(n):
			for i, name := range n.Input {
				if i != at {
					delete(keeps, name)
				}
			}
		default:
			for _, name := range onnx.Reads(n) {
				delete(keeps, name)
			}
		}
	}
	for _, out := range m.Outputs() {
		delete(keeps, out.Name)
	}
	return keeps
}

// share makes the sessions of these options use the weights as the initializers of a graph that
// lacks their elements (see onnx.Model.Detached). The engine computes with the elements of those in
// inPlace themselves. Of the others only its optimiser of graphs reads them, and the session copies
// the initializers of the optimised graph.
func (r *Runtime) share(options *binding.SessionOptions, weights []onnx.Weight, inPlace map[string]bool) (*sharedWeights, error) {
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
	for i := 0; err == nil && i < len(weights); i++ {
		if inPlace[weights[i].Name] {
			err = r.capi.err(r.capi.addInitializer(optionsHandle(options), weights[i].Name, s.values[i]))
		}
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
