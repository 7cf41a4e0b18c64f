package oip

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// Options of a Network.
type Options struct {
	Version  string            // of the model; "": the server's choice
	Requests int               // number of requests at a time; 0: 4
	Note     func(text string) // is told of requests that are repeated; nil: nobody is
	Name     string            // of the model in messages; "": its address
	Gone     func() error      // returns why the server has ended; nil: nothing is known
	Hangs    func(err error)   // is called when a server at a Unix socket does not answer in time; may be nil
}

// A Network is a model of a server. It implements engine.Network.
type Network struct {
	client   *client
	requests int
	metadata engine.Metadata
	types    map[string]string // datatypes of the inputs
	layers   []tensor.Layer    // that are not among the outputs of every answer
	identity []any             // what Hash hashes
	vjp, jvp derivative        // its models of derivatives
	pools    bool              // the server pools and keeps activations: see reductions.go
	keeps    bool              // and has a memory of its own for them
	takes    []string          // see Takes

	asBytes atomic.Bool  // tensors are sent as bytes
	shares  atomic.Bool  // tensors are in memory that the server shares
	largest atomic.Int64 // most samples of a request; 0: not known

	mutex sync.Mutex
	probe map[string]tensor.Tensor // outputs for the first probe; nil: Layers was not called yet
	setup engine.Setup             // of the probe
	batch int                      // samples of the probe
}

type modelMetadata struct {
	Name       string       `json:"name"`
	Versions   []string     `json:"versions"`
	Platform   string       `json:"platform"`
	Inputs     []wireTensor `json:"inputs"`
	Outputs    []wireTensor `json:"outputs"`
	Parameters struct {
		Digest any `json:"digest"`
		// Layers are further tensors that a request may name as outputs, with shapes in which -1 is
		// the batch. Noether's worker for Python has them.
		Layers     []wireTensor      `json:"layers"`
		Properties map[string]string `json:"properties"`
		Pools      bool              `json:"pools"`
		Keeps      bool              `json:"keeps"`
		Takes      []string          `json:"takes"`
	} `json:"parameters"`
}

// Open reads the metadata of a model: see the package comment for addresses.
func Open(ctx context.Context, location string, o Options) (*Network, error) {
	a, err := parseAddress(location, o.Version)
	if err != nil {
		return nil, err
	}
	o.Requests = cmp.Or(o.Requests, 4)
	n := &Network{requests: o.Requests, types: map[string]string{}}
	if n.client, err = newClient(a, o); err != nil {
		return nil, err
	}
	if err := n.describe(ctx, location); err != nil {
		return nil, fmt.Errorf("model %s: %w", cmp.Or(o.Name, location), err)
	}
	n.metadata.Name = cmp.Or(o.Name, location)
	return n, nil
}

func (n *Network) describe(ctx context.Context, location string) error {
	var m modelMetadata
	err := n.client.get(ctx, n.client.model, &m)
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return fmt.Errorf("%w: is the model loaded, and does the server speak the Open Inference Protocol, version 2?", err)
	}
	if err != nil {
		return err
	}
	if len(m.Inputs) == 0 {
		return errors.New("the server does not say which inputs the model has: give them in the server's configuration of the model")
	}
	n.metadata = engine.Metadata{Name: location, Properties: m.Parameters.Properties}
	for _, t := range m.Inputs {
		n.types[t.Name] = t.Datatype
		n.metadata.Inputs = append(n.metadata.Inputs, t.port())
	}
	for _, t := range m.Outputs {
		n.metadata.Outputs = append(n.metadata.Outputs, t.port())
	}
	for _, t := range m.Parameters.Layers {
		op, _ := t.Parameters["op"].(string)
		axes, _ := t.Parameters["axes"].(string)
		l := tensor.Layer{Name: t.Name, Op: op, Depth: len(n.layers) + 1}
		if len(t.Shape) > 1 && t.Shape[0] == -1 && !slices.ContainsFunc(t.Shape[1:], func(d int) bool { return d < 1 }) {
			l.Shape = t.Shape[1:]
		}
		if len(axes) == len(t.Shape) {
			l.Axes = tensor.Axes(axes)
		}
		n.layers = append(n.layers, l)
	}
	n.pools, n.keeps = m.Parameters.Pools, m.Parameters.Pools && m.Parameters.Keeps
	n.takes = m.Parameters.Takes
	n.identity = []any{m.Name, n.client.model, m.Platform, m.Inputs, m.Outputs, m.Parameters.Digest}
	if !strings.Contains(n.client.model, "/versions/") {
		n.identity = append(n.identity, m.Versions) // of which the server chooses
	}
	n.asBytes.Store(true)
	if err := n.findExtensions(ctx); err != nil {
		return err
	}
	if err := n.findDerivatives(ctx); err != nil || len(m.Outputs) > 0 {
		return err
	}
	return n.findOutputs(ctx)
}

// findExtensions reads whether the server shares memory with its clients.
func (n *Network) findExtensions(ctx context.Context) error {
	var server struct {
		Extensions []string `json:"extensions"`
	}
	err := n.client.get(ctx, "/v2", &server)
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return nil // it does not tell
	}
	if err != nil {
		return err
	}
	n.shares.Store(n.client.local() && slices.Contains(server.Extensions, "system_shared_memory"))
	return nil
}

// findOutputs runs the model on zeros to see which outputs it has: some servers have metadata of
// inputs alone.
func (n *Network) findOutputs(ctx context.Context) error {
	setup := engine.Setup{Feed: func(input string, size int) (*engine.Array, error) {
		i := slices.IndexFunc(n.metadata.Inputs, func(p engine.Port) bool { return p.Name == input })
		shape := n.metadata.Inputs[i].Sizes()
		for axis, d := range shape {
			switch {
			case d >= 0:
			case axis > 0:
				return nil, fmt.Errorf("the server does not say which outputs the model has, nor the size of input %s: give the outputs in the server's configuration of the model", input)
			default:
				shape[axis] = size
			}
		}
		return engine.NewArray(n.metadata.Inputs[i].Type, shape...), nil
	}}
	outputs, order, err := n.runZeros(ctx, setup, 1)
	if err != nil {
		return err
	}
	for _, name := range order {
		t := wireTensor{Name: name, Datatype: "FP32", Shape: slices.Clone(outputs[name].Shape)}
		if len(t.Shape) > 0 {
			t.Shape[0] = -1
		}
		n.metadata.Outputs = append(n.metadata.Outputs, t.port())
	}
	return nil
}

// port returns what the metadata of the protocol say of an input or output. A datatype that arrays
// do not have is kept as its name.
func (t wireTensor) port() engine.Port {
	p := engine.Port{Name: t.Name, Type: engine.Type(t.Datatype), Shape: []engine.Dim{}}
	if d, ok := datatypes[t.Datatype]; ok && d.port != "" {
		p.Type = d.port
	}
	for _, d := range t.Shape {
		p.Shape = append(p.Shape, engine.Dim{Size: max(d, -1)})
	}
	return p
}

// Metadata implements engine.Network.
func (n *Network) Metadata() *engine.Metadata { return &n.metadata }

// Takes reports whether the parameter takes of the model's metadata, which Noether's worker for
// Python sets for functions, contains what.
func (n *Network) Takes(what string) bool { return slices.Contains(n.takes, what) }

// Hash returns the SHA-256 of the model's name, version (or those among which the server chooses),
// inputs and outputs, and of the parameter digest of its metadata, which a server may set to a hash
// of the weights.
func (n *Network) Hash() (string, error) {
	text, err := json.Marshal(n.identity)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// Limits implements engine.Network.
func (n *Network) Limits() engine.Limits {
	return engine.Limits{Workers: n.requests, Pools: n.pools, Reductions: n.keeps, Keeps: n.keeps, Elsewhere: n.keeps || !n.client.local()}
}

// Note implements engine.Noter.
func (n *Network) Note(format string, values ...any) { n.client.note(fmt.Sprintf(format, values...)) }

// Close closes idle connections.
func (n *Network) Close() error {
	n.client.http.CloseIdleConnections()
	return nil
}

// Layers runs the network on batches of two and three zeros, and takes the outputs whose first axis
// is as long for layers. A network that refuses both gets one sample at a time.
func (n *Network) Layers(ctx context.Context, s engine.Setup) (*engine.Layers, error) {
	sizes := []int{2, 3}
	if s.Batch > 0 {
		sizes = []int{s.Batch}
	}
	first, order, err := n.runZeros(ctx, s, sizes[0])
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.smaller() && s.Batch == 0 {
		if one, names, single := n.runZeros(ctx, s, 1); single == nil {
			sizes, first, order, err = []int{1}, one, names, nil
			s.Batch = 1
		}
	}
	if err != nil {
		return nil, err
	}
	second := first
	if len(sizes) > 1 {
		if second, _, err = n.runZeros(ctx, s, sizes[1]); err != nil {
			return nil, err
		}
	}
	n.mutex.Lock()
	n.probe, n.setup, n.batch = first, s, sizes[0]
	n.mutex.Unlock()
	out := &engine.Layers{All: slices.Clone(n.layers), Outputs: map[string][]int{}, Axes: map[string]tensor.Axes{}, Batch: s.Batch}
	for _, name := range n.order(order) {
		l := tensor.Layer{Name: name, Depth: len(out.All) + 1}
		a, b := first[name].Shape, second[name].Shape
		if len(a) > 1 && len(b) == len(a) && a[0] == sizes[0] && b[0] == sizes[len(sizes)-1] && slices.Equal(a[1:], b[1:]) && tensor.Size(a) > 0 {
			l.Shape = a[1:]
			out.Outputs[name] = l.Shape
		}
		out.All = append(out.All, l)
	}
	for i := range out.All {
		l := &out.All[i]
		if l.Shape == nil {
			continue
		}
		l.Axes = cmp.Or(l.Axes, map[int]tensor.Axes{1: "NC", 2: "NCT", 3: "NCHW"}[len(l.Shape)])
		// The protocol lets an output have the name of an input, of which these axes are then.
		if axes, ok := s.Axes[l.Name]; ok && !slices.Contains(s.Samples, l.Name) {
			if len(axes) != len(l.Shape)+1 {
				return nil, &engine.AxesError{Err: fmt.Errorf("axes %s of %s, which has %d", axes, l.Name, len(l.Shape)+1)}
			}
			l.Axes = axes
		}
		if out.Outputs[l.Name] != nil {
			out.Axes[l.Name] = l.Axes
		}
	}
	return out, nil
}

// order returns the names of the outputs as the metadata have them, then those that only answers
// have.
func (n *Network) order(answered []string) []string {
	var names []string
	for _, p := range n.metadata.Outputs {
		if slices.Contains(answered, p.Name) {
			names = append(names, p.Name)
		}
	}
	for _, name := range answered {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (n *Network) runZeros(ctx context.Context, s engine.Setup, size int) (map[string]tensor.Tensor, []string, error) {
	var arrays []*engine.Array
	for _, p := range n.metadata.Inputs {
		a, err := s.Feed(p.Name, size)
		if err != nil {
			return nil, nil, err
		}
		if a == nil {
			return nil, nil, fmt.Errorf("input %s has the type %s, which cannot be sent", p.Name, p.Type)
		}
		arrays = append(arrays, a)
	}
	return n.infer(ctx, n.callOf(arrays), 1<<30)
}

// Compute returns outputs by name for arrays, the inputs in the order of Metadata.
func (n *Network) Compute(ctx context.Context, inputs []*engine.Array, outputs []string) (map[string]tensor.Tensor, error) {
	q := n.callOf(inputs)
	for i, in := range q.inputs {
		if _, ok := in.array.Data.([]uint8); ok {
			q.inputs[i].datatype = "UINT8"
		}
	}
	for _, name := range outputs {
		q.outputs = append(q.outputs, wireTensor{Name: name})
	}
	out, _, err := n.infer(ctx, q, 1<<30)
	return out, err
}

// infer sends a request. The first that a server refuses for its binary tensors is sent again as
// JSON, as all later ones are.
func (n *Network) infer(ctx context.Context, q call, limit int64) (map[string]tensor.Tensor, []string, error) {
	asBytes := n.asBytes.Load()
	out, order, err := n.request(ctx, q, limit, asBytes)
	if refused := (*refusal)(nil); asBytes && errors.As(err, &refused) && !refused.passing() && n.probed() == nil {
		if plain, names, again := n.request(ctx, q, limit, false); again == nil {
			n.asBytes.Store(false)
			return plain, names, nil
		}
	}
	return out, order, err
}

func (n *Network) probed() map[string]tensor.Tensor {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.probe
}

func (n *Network) request(ctx context.Context, q call, limit int64, asBytes bool) (map[string]tensor.Tensor, []string, error) {
	body, header, err := q.encode(asBytes)
	if err != nil {
		return nil, nil, err
	}
	a, err := n.client.send(ctx, http.MethodPost, n.client.model+"/infer", body, header, limit)
	if err != nil {
		return nil, nil, err
	}
	out, order, err := decode(a)
	if err != nil && n.client.withoutToken(err.Error()) != err.Error() {
		err = fmt.Errorf("%w: it repeats the token", errAnswer)
	}
	return out, order, err
}

// Check returns an error if the model no longer gives the outputs that it gave when its layers were
// found: somebody has replaced it. Values may differ by a thousandth of the output's largest.
func (n *Network) Check(ctx context.Context) error {
	before := n.probed()
	if before == nil {
		return nil
	}
	now, _, err := n.runZeros(ctx, n.setup, n.batch)
	if err != nil {
		return err
	}
	for name, a := range before {
		if b := now[name]; !slices.Equal(a.Shape, b.Shape) || differ(a.Data, b.Data) {
			return fmt.Errorf("model %s changed during the run: output %s for the same input is another now than at the start", n.metadata.Name, name)
		}
	}
	return nil
}

func differ(a, b []float32) bool {
	largest, difference := 0., 0.
	for i := range a {
		if a[i] == b[i] || a[i] != a[i] && b[i] != b[i] {
			continue
		}
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			return true
		}
		difference = max(difference, d)
	}
	for _, v := range a {
		if !math.IsNaN(float64(v)) {
			largest = max(largest, math.Abs(float64(v)))
		}
	}
	return difference > 1e-3*largest
}
