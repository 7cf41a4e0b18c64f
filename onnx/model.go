package onnx

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/internal/filestate"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

const (
	// DefaultOpset is the recommended version of the operator set for new graphs.
	DefaultOpset = 18
	// MinOpset is the oldest version of the operator set that ONNX Runtime supports.
	MinOpset = 7
	// maxBytes is the largest size of a protobuf message, in bytes.
	maxBytes = math.MaxInt32
	// minHuge is the size in bytes from which a file is read into memory of huge pages.
	minHuge = 4 << 20
)

// A Model is a checked ONNX graph with its weights, or references to them. It is immutable:
// functions that change it return another, which shares the weights.
type Model struct {
	proto            *pb.ModelProto
	path             string                     // of the file; "" for a model from memory
	dir              string                     // folder of the external files
	files            []string                   // names of the external files, relative to dir
	states           map[string]filestate.State // of the external files when the model was read, by path
	classifierOutput string                     // output of the classifier, if WithClassifier has set it
	aliases          map[string]string          // tensors by other names that Select takes; see WithModuleNames

	// hashed returns the SHA-256 of the file, to which external files are to be added. The first
	// call frees the content unless weights share it.
	hashed func() hash.Cloner
}

// Read reads and checks the model in a file. External files must exist and are not loaded. Errors
// contain the path. For another framework's file the error tells how to export it.
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
	m.hashed = sync.OnceValue(func() hash.Cloner {
		h := sha256.New().(hash.Cloner)
		h.Write(data)
		return h
	})
	if err := m.followLinks(); err != nil {
		return nil, fmt.Errorf("reading model %s: %w", path, err)
	}
	for _, file := range m.externalPaths() {
		s, err := filestate.Of(file)
		if err != nil {
			return nil, fmt.Errorf("reading model %s: %w", path, err)
		}
		if m.states == nil {
			m.states = map[string]filestate.State{}
		}
		m.states[file] = s
	}
	return m, nil
}

// Parse is Read from memory, which is not retained, without external files.
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
		return nil, withoutPath(err)
	}
	switch {
	case info.IsDir():
		if err := Foreign(path); err != nil {
			return nil, err
		}
		return nil, errors.New("is a folder, not an ONNX file")
	case info.Mode()&fs.ModeDevice != 0:
		return nil, errors.New("is a device, not an ONNX file") // reading a device may never end
	case info.Size() > maxBytes:
		return nil, fmt.Errorf("has %d bytes, and an ONNX file cannot exceed 2 GB: save its weights as external data", info.Size())
	}
	if info.Size() < minHuge { // also a pipe, whose size is 0
		data, err := filesys.ReadFile(path)
		return data, withoutPath(err)
	}
	f, err := filesys.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	data := make([]byte, info.Size())
	machine.PreferHugePages(data)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, withoutPath(err)
	}
	return data, nil
}

// A formatError is the error of data that are not a protobuf message of ONNX.
type formatError string

func (e formatError) Error() string { return string(e) }

// withoutPath removes the path from a file system's error, where the message names it already.
func withoutPath(err error) error {
	if pathError := (*os.PathError)(nil); errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// parse checks a serialised model with external files in dir ("": none allowed).
func parse(data []byte, dir string, decode func([]byte) (*pb.ModelProto, error)) (*Model, error) {
	if len(data) == 0 {
		return nil, errors.New("is empty")
	}
	if isText(data) {
		return nil, formatError("is a text file, not an ONNX model (if it is a Git LFS pointer, run: git lfs pull)")
	}
	p, err := decode(data)
	if err != nil {
		return nil, formatError("this is not an ONNX model, or it is truncated")
	}
	return newModel(p, dir)
}

// newModel checks a message, which it takes over.
func newModel(p *pb.ModelProto, dir string) (*Model, error) {
	nameStandard(p)
	m := &Model{proto: p, dir: dir}
	if err := check(m); err != nil {
		return nil, err
	}
	removeDefaults(p)
	moveWeights(p.Graph)
	return m, nil
}

// isText reports whether data are text: a protocol buffer begins with control characters.
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

func nameStandard(p *pb.ModelProto) {
	const long = "ai.onnx"
	sets := slices.Clone(p.OpsetImport)
	for _, f := range p.Functions {
		sets = append(sets, f.OpsetImport...)
	}
	for _, s := range sets {
		if s.GetDomain() == long {
			s.Domain = new("")
		}
	}
	if p.Graph == nil {
		return
	}
	pbutil.EachGraph(p, func(g *pb.GraphProto) error {
		for _, n := range g.Node {
			if n.GetDomain() == long {
				n.Domain = nil
			}
		}
		return nil
	})
}

// removeDefaults removes initializers from the inputs, so that they are constants. Up to IR version
// 3 all were inputs with default values, which a runtime cannot evaluate in advance. An older
// version is set to 4.
func removeDefaults(p *pb.ModelProto) {
	g := p.Graph
	weights := initializers(g)
	inputs := g.Input[:0]
	for _, in := range g.Input {
		if !weights[in.GetName()] {
			inputs = append(inputs, in)
		}
	}
	g.Input = inputs
	p.IrVersion = new(max(p.GetIrVersion(), 4))
}

// moveWeights makes initializers of the floating-point tensors with axes that Constant nodes hold,
// as some exporters write weights.
func moveWeights(g *pb.GraphProto) {
	outputs := map[string]bool{}
	for _, out := range g.Output {
		outputs[out.GetName()] = true
	}
	g.Node = slices.DeleteFunc(g.Node, func(n *pb.NodeProto) bool {
		t := AttrTensor(n, "value")
		if !IsStandard(n) || n.GetOpType() != "Constant" || len(n.Output) != 1 || outputs[n.Output[0]] ||
			t == nil || len(t.Dims) == 0 || !Type(t.GetDataType()).IsFloat() {
			return false
		}
		t.Name = &n.Output[0]
		g.Initializer = append(g.Initializer, t)
		return true
	})
}

// Path returns the file that the model was read from, or "".
func (m *Model) Path() string { return m.path }

// Proto returns the message of the model, shared with others: do not change it.
func (m *Model) Proto() *pb.ModelProto { return m.proto }

// WithProto returns a model with another message, taken over and not checked, and the external
// files of m.
func (m *Model) WithProto(p *pb.ModelProto) *Model {
	c := *m
	c.proto = p
	return &c
}

// WithGraph returns m with another main graph, taken over and not checked.
func (m *Model) WithGraph(g *pb.GraphProto) *Model {
	c := m.copy()
	c.proto.Graph = g
	return c
}

// copy returns a model with shallow copies of message and graph, so that lists can be replaced.
func (m *Model) copy() *Model {
	c := *m
	c.proto = pbutil.Shallow(m.proto)
	c.proto.Graph = pbutil.Shallow(m.proto.Graph)
	return &c
}

// Nodes returns the nodes of the main graph in topological order. The caller must not change them.
func (m *Model) Nodes() []*pb.NodeProto { return m.proto.Graph.Node }

// Views returns the tensor whose elements another one has in the same order, by the name of that one:
// the result of nodes that change the shape only.
func (m *Model) Views() map[string]string {
	views := map[string]string{}
	for _, n := range m.Nodes() {
		switch n.GetOpType() {
		case "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze":
			if IsStandard(n) && len(n.Input) > 0 {
				views[n.Output[0]] = cmp.Or(views[n.Input[0]], n.Input[0])
			}
		}
	}
	return views
}

// Origin returns the tensor of which a tensor is a copy, by nodes Identity. It is name itself if no
// node computes the tensor that is copied.
func (m *Model) Origin(name string) string {
	source := map[string]string{} // of the outputs of nodes
	for _, n := range m.Nodes() {
		for _, out := range n.Output {
			source[out] = ""
			if n.GetOpType() == "Identity" && len(n.Input) == 1 {
				source[out] = n.Input[0]
			}
		}
	}
	origin := name
	for source[origin] != "" {
		origin = source[origin]
	}
	if _, computed := source[origin]; !computed {
		return name
	}
	return origin
}

// Opset returns the version of the standard operator set of the model.
func (m *Model) Opset() int { return opset(m.proto) }

// Inputs returns the inputs of the graph.
func (m *Model) Inputs() []ValueInfo { return valueInfos(m.proto.Graph.Input) }

// Outputs returns the outputs of the graph.
func (m *Model) Outputs() []ValueInfo { return valueInfos(m.proto.Graph.Output) }

func valueInfos(values []*pb.ValueInfoProto) []ValueInfo {
	list := make([]ValueInfo, len(values))
	for i, v := range values {
		list[i] = ValueInfoOf(v)
	}
	return list
}

// Bytes returns the serialised model. External weights stay references; without them, more than 2
// GB are an error.
func (m *Model) Bytes() ([]byte, error) {
	if size := proto.Size(m.proto); size > maxBytes {
		return nil, fmt.Errorf("serialising a model: it has %d bytes, and a message cannot exceed 2 GB: save its weights as external data", size)
	}
	data, err := proto.Marshal(m.proto)
	if err != nil {
		return nil, fmt.Errorf("serialising a model: %w", err)
	}
	return data, nil
}

// Parameters counts the elements of dense floating-point initializers of the main graph.
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

// opset returns the version of the standard operator set, 0 if it is not imported.
func opset(p *pb.ModelProto) int {
	for _, o := range p.OpsetImport {
		if o.GetDomain() == "" {
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
