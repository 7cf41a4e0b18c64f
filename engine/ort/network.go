package ort

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/reduction"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// NetworkOptions are the options of a Network.
type NetworkOptions struct {
	Threads int    // as in Options
	Device  string // as in Options
	Spin    bool   // as in Options
	// ReloadWeights frees the weights after FreeWeights and reads them again for each session. That
	// saves memory if many networks are open.
	ReloadWeights bool
	// RoundHalf rounds the activations of half-precision files to their type; see
	// rewrite.ReadRounded.
	RoundHalf bool
}

// A Network is an ONNX file that ONNX Runtime computes. It implements engine.Differentiable.
type Network struct {
	runtime  *Runtime
	path     string
	options  NetworkOptions
	graph    *onnx.Model // with the rewrites
	hash     func() (string, error)
	freed    bool                                     // graph lacks its weights
	rewrites []func(*onnx.Model) (*onnx.Model, error) // in order
}

// OpenNetwork returns the network of a file.
func (r *Runtime) OpenNetwork(path string, o NetworkOptions) (*Network, error) {
	graph, err := engine.Within(r.RunLimit(), func() (*onnx.Model, error) { return readGraph(path, o) })
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", path, err)
	}
	return r.NewNetwork(graph, o)
}

// NewNetwork is OpenNetwork for a model that rewrite.ReadFloat32 has read from a file.
func (r *Runtime) NewNetwork(file *onnx.Model, o NetworkOptions) (*Network, error) {
	if err := r.CheckDevice(o.Device); err != nil {
		return nil, fmt.Errorf("model %s: %w", file.Path(), err)
	}
	return &Network{runtime: r, path: file.Path(), options: o, graph: file, hash: sync.OnceValues(file.SHA256)}, nil
}

func readGraph(path string, o NetworkOptions) (*onnx.Model, error) {
	read := rewrite.ReadFloat32
	if o.RoundHalf {
		read = rewrite.ReadRounded
	}
	graph, err := read(path)
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	if err != nil {
		return nil, err
	}
	return graph.WithModuleNames(), nil
}

// Runtime returns the library that computes the network.
func (n *Network) Runtime() *Runtime { return n.runtime }

// Options returns the options of sessions on the network's device.
func (n *Network) Options() Options {
	return Options{Threads: n.options.Threads, Device: n.options.Device}
}

// Metadata implements engine.Network.
func (n *Network) Metadata() *engine.Metadata {
	m := &engine.Metadata{Name: n.path, Inputs: portsOf(n.graph.Inputs()), Outputs: portsOf(n.graph.Outputs()), Properties: map[string]string{}}
	for _, e := range n.graph.Proto().MetadataProps {
		m.Properties[e.GetKey()] = e.GetValue()
	}
	return m
}

func portsOf(infos []onnx.ValueInfo) (ports []engine.Port) {
	for _, p := range infos {
		port := engine.Port{Name: p.Name, Type: engine.Type(p.Type.String())}
		if p.Shape != nil {
			port.Shape = []engine.Dim{}
		}
		for _, d := range p.Shape {
			port.Shape = append(port.Shape, engine.Dim(d))
		}
		ports = append(ports, port)
	}
	return ports
}

// Hash returns the SHA-256 of the files, in hexadecimal.
func (n *Network) Hash() (string, error) { return n.hash() }

// Limits implements engine.Network.
func (n *Network) Limits() engine.Limits {
	workers := cmp.Or(n.options.Threads, runtime.NumCPU())
	if !OnCPU(n.options.Device) {
		workers = 1
	}
	return engine.Limits{Workers: workers, Memory: n.runtime.FreeMemory(), Time: n.runtime.RunLimit(), Reductions: true}
}

// Note implements engine.Noter.
func (n *Network) Note(format string, values ...any) { n.runtime.Note(format, values...) }

// Close does nothing: a network without sessions holds Go memory only.
func (n *Network) Close() error { return nil }

// Graph returns the graph, without large weights after FreeWeights. It must not be changed.
func (n *Network) Graph() *onnx.Model { return n.graph }

// Rewrite returns the network with another graph, which f makes of the file's. f is called again
// whenever the file is read again.
func (n *Network) Rewrite(f func(*onnx.Model) (*onnx.Model, error)) (engine.Network, error) {
	graph, err := f(n.graph)
	if err != nil {
		return nil, err
	}
	c := *n
	c.graph, c.rewrites = graph, append(slices.Clip(n.rewrites), f)
	return &c, nil
}

// FreeWeights frees the weights if the options say so. It must not be called while another method
// is in progress.
func (n *Network) FreeWeights() {
	if n.options.ReloadWeights {
		n.graph, n.freed = rewrite.WithoutWeights(n.graph), true
	}
}

// FullGraph returns the graph with its weights. It reads them again if they were freed.
func (n *Network) FullGraph() (*onnx.Model, error) {
	if !n.freed {
		return n.graph, nil
	}
	graph, err := readGraph(n.path, n.options)
	if err != nil {
		return nil, err
	}
	sum, err := graph.SHA256()
	if err != nil {
		return nil, err
	}
	if before, err := n.hash(); err != nil || sum != before {
		return nil, errors.Join(err, errors.New("the file has changed since it was opened"))
	}
	for _, f := range n.rewrites {
		if graph, err = f(graph); err != nil {
			return nil, err
		}
	}
	return graph, nil
}

// Open implements engine.Network. Request.Parallel divides the threads.
func (n *Network) Open(_ context.Context, r engine.Request) (engine.Session, error) {
	graph, names, err := n.withRequest(r)
	if err != nil {
		return nil, err
	}
	return n.compile(graph, names, r)
}

func (n *Network) compile(b *onnx.Builder, names []string, r engine.Request) (engine.Session, error) {
	graph, err := b.Model()
	if err != nil {
		return nil, err
	}
	if graph, err = rewrite.WithOutputs(graph, names); err != nil {
		return nil, err
	}
	o := n.Options()
	if r.Parallel > 1 {
		o.Threads = n.Limits().Workers / r.Parallel
	}
	return n.Compile(graph, o.Threads, n.options.Spin)
}

// Compile returns a session for another graph, on the network's device: see Compiler.
func (n *Network) Compile(graph *onnx.Model, threads int, spin bool) (engine.Session, error) {
	return Compiler{n.runtime, n.Options()}.Compile(graph, threads, spin)
}

// A Compiler opens sessions for graphs that other packages build. It is the door through which they
// run graphs without this package.
type Compiler struct {
	Runtime *Runtime
	Options Options
}

// Compile returns a session for a graph. threads is the number of threads of a run; 0: that of the
// options. spin is Options.Spin.
func (c Compiler) Compile(graph *onnx.Model, threads int, spin bool) (engine.Session, error) {
	o := c.Options
	o.Spin = spin
	if threads > 0 {
		o.Threads = threads
	}
	s, err := c.Runtime.NewSession(graph, o)
	if err != nil {
		return nil, explainError(err)
	}
	return arraySession{s}, nil
}

func (n *Network) withRequest(r engine.Request) (*onnx.Builder, []string, error) {
	full, err := n.FullGraph()
	if err != nil {
		return nil, nil, err
	}
	b := onnx.Extend(full)
	var names []string
	for _, o := range r.Outputs {
		name := o.Name
		if o.Convert {
			name += " as float32"
			b.Output(name, b.Reshape(b.Cast(onnx.Value(o.Name), onnx.Float), append([]int{-1}, o.Shape...)...))
		}
		names = append(names, name)
	}
	return b, append(names, addReductions(b, r.Reductions)...), nil
}

// addReductions adds reductions and their inputs to the graph for transformed samples, and returns
// the names of their results.
func addReductions(b *onnx.Builder, reductions []engine.Reduction) []string {
	if len(reductions) == 0 {
		return nil
	}
	var names []string
	clean := map[string]onnx.Value{}
	partners := b.Input(engine.PartnersInput, onnx.Int32, -1)
	for i, r := range reductions {
		l := r.Layer
		if clean[l.Name] == "" {
			clean[l.Name] = b.Input(engine.CleanInput(l.Name), onnx.Float, append([]int{-1}, l.Shape...)...)
		}
		names = append(names, fmt.Sprintf("reduction %d", i))
		out := reduction.Build(b, r.Values, l, clean[l.Name], onnx.Value(l.Name), partners)
		b.OutputInfo(onnx.ValueInfo{Name: names[i], Type: onnx.Float}, out)
	}
	return names
}

// NoVJP implements engine.Differentiable. Operators without a gradient are an error of OpenVJP.
func (n *Network) NoVJP() string { return "" }

// OpenVJP implements engine.Differentiable.
func (n *Network) OpenVJP(ctx context.Context, r engine.Request, by ...string) (engine.Session, error) {
	if len(by) == 0 {
		return n.Open(ctx, r)
	}
	b, names, err := n.withRequest(r)
	if err != nil {
		return nil, err
	}
	var outputs, cotangents, inputs []onnx.Value
	for i, o := range r.Outputs {
		outputs = append(outputs, onnx.Value(names[i]))
		cotangents = append(cotangents, b.Input(engine.CotangentInput(o.Name), onnx.Float, append([]int{-1}, o.Shape...)...))
	}
	for _, name := range by {
		inputs = append(inputs, onnx.Value(name))
	}
	gradients, err := engine.Within(n.Limits().Time, func() ([]onnx.Value, error) { return grad.Pullback(b, outputs, cotangents, inputs...) })
	if err != nil {
		return nil, err
	}
	for i, g := range gradients {
		name := "gradient " + by[i]
		b.OutputInfo(onnx.ValueInfo{Name: name, Type: onnx.Float}, b.Cast(g, onnx.Float))
		names = append(names, name)
	}
	return n.compile(b, names, r)
}
