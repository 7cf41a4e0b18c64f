package ort

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/onnx"
)

type notes struct {
	sync.Mutex
	told map[string]bool // remarks passed, and "DEVICE OPERATOR" for operators that a remark named
	to   func(string)    // nil: remarks are dropped
}

// Notify makes the runtime pass remarks that are no errors to a function, each one once: which
// operators a device leaves to the CPU, and that a batch was made smaller.
func (r *Runtime) Notify(to func(string)) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.notes.to = to
}

// Note passes a remark to the function that Notify has set, unless it was passed before.
func (r *Runtime) Note(format string, values ...any) {
	r.notes.Lock()
	defer r.notes.Unlock()
	if text := fmt.Sprintf(format, values...); r.notes.to != nil && r.notes.first(text) {
		r.notes.to(text)
	}
}

func (n *notes) first(key string) bool {
	if n.told[key] {
		return false
	}
	if n.told == nil {
		n.told = map[string]bool{}
	}
	n.told[key] = true
	return true
}

// noteFallbacks names the operators that the device leaves to the CPU, each once per device.
func (r *Runtime) noteFallbacks(session *binding.DynamicAdvancedSession, m *onnx.Model, device string) error {
	operators, err := r.fallbacks(sessionHandle(session), m)
	if err != nil {
		return err
	}
	r.notes.Lock()
	operators = slices.DeleteFunc(operators, func(op string) bool { return !r.notes.first(device + " " + op) })
	r.notes.Unlock()
	if len(operators) > 0 {
		r.Note("device %s lacks the operators %s: they run on the CPU, and their inputs and outputs are copied", device, strings.Join(operators, ", "))
	}
	return nil
}

// fallbacks returns the operators of a session's graph that run on the CPU, sorted. It leaves out
// the nodes that compute shapes, which the engine runs there on any device. r.capi calls the
// engine's C API.
func (r *Runtime) fallbacks(session pointer, m *onnx.Model) ([]string, error) {
	shapes := shapeNodes(m)
	subgraphs, err := r.capi.list(r.capi.graphAssignment, session)
	if err != nil {
		return nil, err
	}
	var operators []string
	for _, s := range subgraphs {
		provider, err := r.capi.text(r.capi.subgraphProvider, s)
		if err != nil {
			return nil, err
		}
		if provider != providers[0].name { // the CPU's
			continue
		}
		nodes, err := r.capi.list(r.capi.subgraphNodes, s)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			name, err := r.capi.text(r.capi.nodeName, n)
			if err != nil {
				return nil, err
			}
			op, err := r.capi.text(r.capi.nodeOperator, n)
			if err != nil {
				return nil, err
			}
			if !shapes[nodeKey{name, op}] && !slices.Contains(operators, op) {
				operators = append(operators, op)
			}
		}
	}
	slices.Sort(operators)
	return operators, nil
}

// A nodeKey is the name and the operator of a node. Names of nodes are optional in ONNX and need
// not differ, so several nodes may have the same key.
type nodeKey struct{ name, op string }

// shapeNodes tells for each key whether all its nodes are deterministic and depend on the elements
// of no input, only on shapes if at all.
func shapeNodes(m *onnx.Model) map[nodeKey]bool {
	elements := map[string]bool{} // tensors that depend on elements of the inputs, or are random
	for _, p := range m.Inputs() {
		elements[p.Name] = true
	}
	shapes := map[nodeKey]bool{}
	for _, n := range m.Nodes() {
		op := n.GetOpType()
		byElements := len(n.GetInput()) == 0 && op != "Constant" || // such as RandomNormal
			op != "Shape" && op != "Size" && slices.ContainsFunc(n.GetInput(), func(name string) bool { return elements[name] })
		key := nodeKey{n.GetName(), op}
		if known, ok := shapes[key]; known || !ok {
			shapes[key] = !byElements
		}
		for _, name := range n.GetOutput() {
			elements[name] = byElements
		}
	}
	return shapes
}
