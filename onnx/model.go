package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

const (
	// DefaultOpset is the version of the operator set that a new graph should use unless something
	// speaks against it.
	DefaultOpset = 18
	// MinOpset is the oldest version of the operator set that ONNX Runtime supports.
	MinOpset = 7
	// maxBytes is the size that a protocol buffer message cannot exceed.
	maxBytes = math.MaxInt32
)

// A Model is an ONNX graph that has been checked, with its weights or references to them. A Model
// does not change: what cuts or extends it returns another one, which shares the weights.
type Model struct {
	proto *pb.ModelProto
	path  string   // of the file; empty for a model that comes from memory
	dir   string   // that external data is relative to
	files []string // that hold external data, in dir
	final string   // the output that the classifier ends in, where the caller has said so
}

// Read loads and checks the model in a file. Weights in external files are checked to be there and
// stay there. The error begins with the path.
// For a file of another framework it says how to export the network.
func Read(path string) (*Model, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading model %s: %w", path, err)
	}
	m, err := parse(data, filepath.Dir(path), decode)
	if format := formatError(""); errors.As(err, &format) {
		err = notONNX(path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading model %s: %w", path, err)
	}
	m.path = path
	if err := m.followLinks(); err != nil {
		return nil, fmt.Errorf("reading model %s: %w", path, err)
	}
	return m, nil
}

// Parse is Read for a model in memory, which cannot refer to external files.
func Parse(data []byte) (*Model, error) {
	m, err := parse(data, "", func(data []byte) (*pb.ModelProto, error) {
		p := new(pb.ModelProto)
		return p, proto.Unmarshal(data, p)
	})
	if err != nil {
		return nil, fmt.Errorf("parsing model: %w", err)
	}
	return m, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, bare(err)
	}
	switch {
	case info.IsDir():
		if err := Foreign(path); err != nil {
			return nil, err
		}
		return nil, errors.New("is a folder, not an ONNX file")
	case info.Mode()&fs.ModeDevice != 0:
		return nil, errors.New("is a device, not an ONNX file") // and may never end
	case info.Size() > maxBytes:
		return nil, fmt.Errorf("has %d bytes, and an ONNX file cannot exceed 2 GB: keep its weights as external data", info.Size())
	}
	data, err := os.ReadFile(path)
	return data, bare(err)
}

// A formatError is an error in bytes that are not a message of ONNX.
type formatError string

func (e formatError) Error() string { return string(e) }

// bare takes the path out of an error of the file system, for errors that name the path already.
func bare(err error) error {
	if pathError := (*os.PathError)(nil); errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

func parse(data []byte, dir string, decode func([]byte) (*pb.ModelProto, error)) (*Model, error) {
	if len(data) == 0 {
		return nil, errors.New("is empty")
	}
	if isText(data) {
		return nil, formatError("is a text file, not an ONNX model (a pointer of Git LFS? then run: git lfs pull)")
	}
	p, err := decode(data)
	if err != nil {
		return nil, formatError("is not an ONNX model, or it is truncated")
	}
	return wrap(p, dir)
}

// wrap checks a message, which it takes over, and makes it a model.
func wrap(p *pb.ModelProto, dir string) (*Model, error) {
	m := &Model{proto: p, dir: dir}
	if err := check(m); err != nil {
		return nil, err
	}
	fixDefaults(p)
	return m, nil
}

// isText tells prose from protocol buffers, whose first bytes include control characters.
func isText(data []byte) bool {
	head := data[:min(len(data), 256)]
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && len(head) >= utf8.UTFMax || r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		head = head[n:]
	}
	return true
}

// fixDefaults makes initializers constant. Up to IR version 3 every initializer was also an input,
// whose value it was by default; a runtime cannot fold such weights, and nobody feeds them.
func fixDefaults(p *pb.ModelProto) {
	g := p.Graph
	weights := initializers(g)
	inputs := g.Input[:0]
	for _, in := range g.Input {
		if !weights[in.GetName()] {
			inputs = append(inputs, in)
		}
	}
	g.Input = inputs
	p.IrVersion = pbutil.Ptr(max(p.GetIrVersion(), 4))
}

// Path is the file that the model was read from, or empty.
func (m *Model) Path() string { return m.path }

// Proto is the message beneath the model. It is shared with other models: read it, do not change
// it.
func (m *Model) Proto() *pb.ModelProto { return m.proto }

// WithProto returns a model with another message, which the caller has made from that of m and
// gives away. Its external files are those of m. The message is not checked.
func (m *Model) WithProto(p *pb.ModelProto) *Model {
	c := *m
	c.proto = p
	return &c
}

// WithGraph is WithProto with another main graph.
func (m *Model) WithGraph(g *pb.GraphProto) *Model {
	c := m.copy()
	c.proto.Graph = g
	return c
}

// copy returns a model whose message and graph are its own, so that their lists can be replaced.
// The elements of the lists are shared.
func (m *Model) copy() *Model {
	c := *m
	c.proto = pbutil.Shallow(m.proto)
	c.proto.Graph = pbutil.Shallow(m.proto.Graph)
	return &c
}

// Nodes are the nodes of the main graph, each after those whose outputs it reads. They are shared:
// do not change them.
func (m *Model) Nodes() []*pb.NodeProto { return m.proto.Graph.Node }

// Opset is the version of the standard operator set that the model is written in.
func (m *Model) Opset() int { return opset(m.proto) }

// Inputs are what a run must be fed.
func (m *Model) Inputs() []Port { return ports(m.proto.Graph.Input) }

// Outputs are what a run returns.
func (m *Model) Outputs() []Port { return ports(m.proto.Graph.Output) }

func ports(values []*pb.ValueInfoProto) []Port {
	list := make([]Port, len(values))
	for i, v := range values {
		list[i] = PortOf(v)
	}
	return list
}

// Bytes serialises the model for a session from memory. External weights stay references, relative
// to ExternalDir.
func (m *Model) Bytes() ([]byte, error) {
	if size := proto.Size(m.proto); size > maxBytes {
		return nil, fmt.Errorf("serialising a model: it has %d bytes, and a message cannot exceed 2 GB: keep its weights as external data", size)
	}
	data, err := proto.Marshal(m.proto)
	if err != nil {
		return nil, fmt.Errorf("serialising a model: %w", err)
	}
	return data, nil
}

// Parameters is the number of weights: the elements of all floating-point initializers.
func (m *Model) Parameters() int64 {
	var n int64
	for _, t := range m.proto.Graph.Initializer {
		if Type(t.GetDataType()).IsFloat() {
			size, _ := pbutil.Elements(t.Dims)
			n += size
		}
	}
	return n
}

// opset is 0 where the standard operator set is not imported.
func opset(p *pb.ModelProto) int {
	for _, o := range p.OpsetImport {
		if o.GetDomain() == "" || o.GetDomain() == "ai.onnx" {
			return int(o.GetVersion())
		}
	}
	return 0
}

func initializers(g *pb.GraphProto) map[string]bool {
	names := make(map[string]bool, len(g.Initializer)+len(g.SparseInitializer))
	for _, t := range g.Initializer {
		names[t.GetName()] = true
	}
	for _, t := range g.SparseInitializer {
		names[t.GetValues().GetName()] = true
	}
	return names
}
