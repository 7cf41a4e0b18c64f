package onnx_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// small returns the model y = relu(x w + 1), with x of n x 3 and w of 3 x 2. Its nodes, and their
// outputs, are named after the operators: MatMul, Add and Relu, but the output of Relu is y.
func small(t testing.TB) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 3)
	w := b.Const("w", tensor.New(3, 2))
	b.Output("y", b.Relu(b.Add(b.MatMul(x, w), b.Scalar(1))))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// changed returns the file of the small model after a change to its protobuf message.
func changed(t testing.TB, change func(p *pb.ModelProto)) []byte {
	t.Helper()
	p := proto.Clone(small(t).Proto()).(*pb.ModelProto)
	change(p)
	data, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// externalData moves the values of a tensor to an external file. pairs are keys and values of
// ONNX's external_data field, such as "location", "weights".
func externalData(t *pb.TensorProto, pairs ...string) {
	t.RawData, t.DataLocation = nil, pb.TensorProto_EXTERNAL.Enum()
	for i := 0; i < len(pairs); i += 2 {
		t.ExternalData = append(t.ExternalData, &pb.StringStringEntryProto{Key: &pairs[i], Value: &pairs[i+1]})
	}
}

func TestReadDevice(t *testing.T) {
	t.Parallel()
	if info, err := os.Stat("/dev/zero"); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Skip("there is no /dev/zero here")
	}
	if _, err := onnx.Read("/dev/zero"); err == nil || err.Error() != "reading model /dev/zero: is a device, not an ONNX file" {
		t.Errorf("error %v", err)
	}
}

// TestReadErrors checks that each broken file gives an error of one line that says what is wrong.
// The weights w of 3 x 2 take 24 bytes; the external file "weights" has 20.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weights"), make([]byte, 20), 0o600); err != nil {
		t.Fatal(err)
	}
	weight := func(change func(w *pb.TensorProto)) []byte {
		return changed(t, func(p *pb.ModelProto) { change(p.Graph.Initializer[0]) })
	}
	node := func(i int, change func(n *pb.NodeProto)) []byte {
		return changed(t, func(p *pb.ModelProto) { change(p.Graph.Node[i]) })
	}
	good, err := small(t).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "is empty"},
		{"Git LFS pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"), "text file"},
		{"text that is not English", []byte(strings.Repeat("é", 200)), "text file"},
		{"truncated", good[:len(good)-7], "truncated"},
		{"arbitrary bytes", []byte{0, 1, 2, 3, 255, 254}, "not an ONNX model"},
		{"no graph", changed(t, func(p *pb.ModelProto) { p.Graph = nil }), "no graph"},
		{"empty graph", changed(t, func(p *pb.ModelProto) { p.Graph = &pb.GraphProto{} }), "empty graph"},
		{"no opset", changed(t, func(p *pb.ModelProto) { p.OpsetImport = nil }), "opset"},
		{"old opset", changed(t, func(p *pb.ModelProto) { *p.OpsetImport[0].Version = 6 }), "opset 6"},
		{"two producers", node(1, func(n *pb.NodeProto) { n.Output[0] = "MatMul" }), `node "Add" (Add) produces tensor "MatMul", which exists already`},
		{"a node that produces an input", node(1, func(n *pb.NodeProto) { n.Output[0] = "x" }), `tensor "x", which exists already`},
		{"no producer", node(0, func(n *pb.NodeProto) { n.Input[1] = "v" }), `node "MatMul" (MatMul) reads tensor "v", which no node produces`},
		{"cycle", node(0, func(n *pb.NodeProto) { n.Input[0] = "y" }), `node "MatMul" (MatMul) and node "Relu" (Relu) form a cycle through tensor "y"`},
		{"a node that reads its own output", node(0, func(n *pb.NodeProto) { n.Input[0] = "MatMul" }), "form a cycle"},
		{"wrong order", changed(t, func(p *pb.ModelProto) {
			p.Graph.Node[0], p.Graph.Node[1] = p.Graph.Node[1], p.Graph.Node[0]
		}), "not in topological order"},
		{"no producer of the output", changed(t, func(p *pb.ModelProto) { *p.Graph.Output[0].Name = "z" }), `output "z" is produced by no node`},
		{"short weights", weight(func(w *pb.TensorProto) { w.RawData = w.RawData[:8] }), `tensor "w" has shape [3 2] of float but 8 bytes of data`},
		{"huge weights", weight(func(w *pb.TensorProto) { w.Dims = []int64{1 << 40, 1 << 40} }), "too large"},
		{"negative weights", weight(func(w *pb.TensorProto) { w.Dims[0] = -3 }), "negative dimension"},
		{"no weights", weight(func(w *pb.TensorProto) { w.RawData = nil }), "[3 2] but 0 values"},
		{"external file", weight(func(w *pb.TensorProto) { externalData(w, "location", "nowhere") }), `"nowhere", which cannot be used: no such file`},
		{"external folder", weight(func(w *pb.TensorProto) { externalData(w, "location", ".") }), "not a regular file"},
		{"external file of the parent folder", weight(func(w *pb.TensorProto) { externalData(w, "location", "../weights") }), `"../weights", outside the model's folder`},
		{"external absolute path", weight(func(w *pb.TensorProto) { externalData(w, "location", "/etc/passwd") }), "outside the model's folder"},
		{"external without location", weight(func(w *pb.TensorProto) { externalData(w, "offset", "0") }), "without a location"},
		{"negative external offset", weight(func(w *pb.TensorProto) { externalData(w, "location", "weights", "offset", "-1") }), `offset is "-1"`},
		{"end of the external file", weight(func(w *pb.TensorProto) { externalData(w, "location", "weights") }), `ends at byte 24 of external file "weights", which has 20`},
		{"external length", weight(func(w *pb.TensorProto) { externalData(w, "location", "weights", "length", "20") }), "20 bytes of external data"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-")+".onnx")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := onnx.Read(path)
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.name)
		case !strings.HasPrefix(err.Error(), "reading model "+path+": ") || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: error %q, want one with %q", c.name, err, c.want)
		case strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: more than one line: %q", c.name, err)
		}
	}
	for path, want := range map[string]string{dir: "is a folder", filepath.Join(dir, "none.onnx"): "no such file"} {
		if _, err := onnx.Read(path); err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestExternalData checks a model with the weights in a second file: they are found, counted (six,
// and the constant 1), not copied into the graph, and part of the hash.
func TestExternalData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	weights := make([]byte, 30)
	// 1 and 2, after an offset of six bytes.
	copy(weights[6:], []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40})
	file := filepath.Join(dir, "sub", "weights")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "m.onnx")
	data := changed(t, func(p *pb.ModelProto) {
		externalData(p.Graph.Initializer[0], "location", "sub/weights", "offset", "6", "length", "24", "checksum", "?")
	})
	for name, content := range map[string][]byte{file: weights, path: data} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := onnx.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if files := m.ExternalFiles(); m.ExternalDir() != dir || len(files) != 1 || files[0] != "sub/weights" {
		t.Errorf("external files %v in %q", files, m.ExternalDir())
	}
	w, err := m.Tensor("w")
	if err != nil || w.Data[0] != 1 || w.Data[1] != 2 || w.Data[2] != 0 || len(w.Data) != 6 {
		t.Errorf("w is %v: %v", w, err)
	}
	if m.Parameters() != 7 {
		t.Errorf("%d parameters, want 7", m.Parameters())
	}
	serialised, err := m.Bytes()
	if err != nil || bytes.Contains(serialised, weights[6:14]) {
		t.Errorf("the weights were loaded into the graph (%v)", err)
	}
	if _, err := onnx.Parse(data); err == nil || !strings.Contains(err.Error(), "a model in memory has no folder") {
		t.Errorf("in memory: %v", err)
	}

	before, err := m.SHA256()
	if err != nil {
		t.Fatal(err)
	}
	weights[29] ^= 1
	if err := os.WriteFile(file, weights, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.SHA256(); err == nil || !strings.Contains(err.Error(), "weights has changed") {
		t.Errorf("the hash of a model whose weights have changed since it was read: %v", err)
	}
	if m, err = onnx.Read(m.Path()); err != nil {
		t.Fatal(err)
	}
	if after, err := m.SHA256(); err != nil || after == before {
		t.Errorf("the hash does not change with a weight (%v)", err)
	}
}

// SHA256 is the hash of the file as it was read, also if the file has changed since, and stays so
// when it is asked for again.
func TestSHA256OfChangedFile(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(testdata.Path(t, "models", "resnet20-cifar10.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%x", sha256.Sum256(content))
	for range 2 {
		if got, err := m.SHA256(); err != nil || got != want {
			t.Errorf("%s (%v), want %s", got, err, want)
		}
	}
}

// SHA256 of a file without external data is what sha256sum prints.
func TestSHA256(t *testing.T) {
	t.Parallel()
	m, err := onnx.Read(testdata.Path(t, "models", "resnet20-cifar10.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "585484f525ad1aadf7073405a63725b5db11e12c17747243a81c0043cf19893d"
	if got, err := m.SHA256(); err != nil || got != want {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}

// Fields that the ONNX schema of this program lacks are kept when a model is read, reduced to the
// nodes that an output needs, and written.
func TestUnknownFieldsSurvive(t *testing.T) {
	t.Parallel()
	field := func(s string) []byte { // number 999, which the schema does not have
		return protowire.AppendString(protowire.AppendTag(nil, 999, protowire.BytesType), s)
	}
	data := changed(t, func(p *pb.ModelProto) {
		p.ProtoReflect().SetUnknown(field("of the model"))
		p.Graph.ProtoReflect().SetUnknown(field("of the graph"))
		p.Graph.Node[0].ProtoReflect().SetUnknown(field("of a node"))
	})
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = rewrite.WithOutputs(m, []string{"MatMul"}); err != nil {
		t.Fatal(err)
	}
	out, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"of the model", "of the graph", "of a node"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("the field %s is lost", want)
		}
	}
}

// Up to version 3 of ONNX's IR (the file format), weights were inputs with a default value.
func TestDefaultsAreNotInputs(t *testing.T) {
	t.Parallel()
	m, err := onnx.Parse(changed(t, func(p *pb.ModelProto) {
		*p.IrVersion = 3
		p.Graph.Input = append(p.Graph.Input, &pb.ValueInfoProto{Name: new("w")})
	}))
	if err != nil {
		t.Fatal(err)
	}
	if in := m.Inputs(); len(in) != 1 || in[0].String() != "x float[batch 3]" {
		t.Errorf("the inputs are %v", in)
	}
	if m.Proto().GetIrVersion() < 4 {
		t.Errorf("IR version %d: the weights are still inputs", m.Proto().GetIrVersion())
	}
}

// Tensors of the outer graph that a branch of an If node reads count as read by that node. So they
// count for its depth, the number of nodes on the longest path from the input. Layers are the
// float32 tensors outside branches that depend on the input's values.
func TestSubgraphs(t *testing.T) {
	t.Parallel()
	branch := func(op string) *pb.GraphProto {
		return &pb.GraphProto{
			Name:   new(op),
			Node:   []*pb.NodeProto{{OpType: &op, Input: []string{"Add"}, Output: []string{"inside"}}},
			Output: []*pb.ValueInfoProto{{Name: new("inside"), Type: &pb.TypeProto{Value: &pb.TypeProto_TensorType{TensorType: &pb.TypeProto_Tensor{ElemType: new(int32(1))}}}}},
		}
	}
	b := onnx.Extend(small(t))
	condition := b.Op("Greater", nil, b.Scalar(1), b.Scalar(0))
	b.Output("z", b.Op("If", onnx.Attrs{"then_branch": branch("Exp"), "else_branch": branch("Neg")}, condition))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	cut, err := rewrite.WithOutputs(m, []string{"z"})
	if err != nil {
		t.Fatal(err)
	}
	layers := cut.Layers()
	last := layers[len(layers)-1]
	if last.Name != "z" || last.Depth != 3 {
		t.Errorf("the last layer is %v: want z, at depth 3 behind MatMul and Add", last)
	}
	if names := onnx.Names(layers); len(names) != 3 {
		t.Errorf("the layers are %v: want MatMul, Add and z", names)
	}
}

// TestFilesOfOtherFrameworks checks that the errors for files of other frameworks say how to export
// their networks. Those of other frameworks than PyTorch do not mention torch.
func TestFilesOfOtherFrameworks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct{ data, want string }{
		"net.pt":       {"PK\x03\x04....archive/data.pkl" /* a zip archive */, "is a PyTorch file, not an ONNX model; export the network from Python:\n  model.eval()\n  torch.onnx.export("},
		"old.bin":      {"\x80\x02}q\x00." /* a pickle */, "is a PyTorch file"},
		"net.h5":       {"\x89HDF\r\n\x1a\n", "tf2onnx.convert.from_keras("},
		"net.tflite":   {"\x1c\x00\x00\x00TFL3....", "--tflite"},
		"net.msgpack":  {"\x81\xa6params", "jax2onnx"},
		"noise.weight": {"\x00\x01\x02\xff", "is not an ONNX model, or it is truncated; from PyTorch, export the network"},
		"noise.onnx":   {"\x00\x01\x02\xff", "is not an ONNX model, or it is truncated"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.data), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := onnx.Read(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "torch") != strings.Contains(c.want, "PyTorch") {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
