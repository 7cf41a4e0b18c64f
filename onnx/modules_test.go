package onnx

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/pb"
)

// TestModuleNames reads a file of PyTorch's exporter. testdata/dynamo.py has found the module of
// each tensor by its values.
func TestModuleNames(t *testing.T) {
	t.Parallel()
	before, err := Read("testdata/dynamo.onnx")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/dynamo.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	m := before.WithModuleNames()
	between := map[string]string{ // the last module that computes the tensor, or whose output it is a part or a form of
		"add": "stages.0.0.add", "add_1": "stages.0.1.add", "add_2": "stages.1.add", "permute": "stages.transpose", "permute_1": "norm.transpose",
		"mean": "pool.reducemean", "val_7": "pool.reshape", "view": "pool.reshape_1",
	}
	names, renamed := Names(before.Layers()), Names(m.Layers())
	for i, name := range names {
		switch module := want[name]; {
		case name == "scores": // an output, whose name stays
			if renamed[i] != name || m.aliases["fc"] != name {
				t.Errorf("the output is %s and fc is %q, want scores for both", renamed[i], m.aliases["fc"])
			}
		case module != "" && renamed[i] != module:
			t.Errorf("%s is called %s, want %s", name, renamed[i], module)
		case module == "" && between[name] != "" && renamed[i] != between[name]:
			t.Errorf("%s is called %s, want %s", name, renamed[i], between[name])
		case module == "" && between[name] == "" && renamed[i] != name:
			t.Errorf("%s is called %s, want no other name", name, renamed[i])
		}
	}
	// Layers are chosen by either name.
	for pattern, want := range map[string][]string{
		"stages.0.0": {"stages.0.0"}, "relu_1": {"stages.0.0"}, "relu_[0]": nil, "stages.*.conv1": {"stages.0.0.conv1", "stages.0.1.conv1", "stages.1.conv1"},
		"fc": {"scores"}, "stages.0.1": {"stages.0"}, "stages.1.act_1": {"stages"}, "conv2d_?": {"stages.0.0.conv1", "stages.0.0.conv2", "stages.0.1.conv1", "stages.0.1.conv2", "stages.1.conv1", "stages.1.conv2"},
	} {
		layers, err := m.Select(pattern)
		if got := Names(layers); (err != nil) != (want == nil) || !slices.Equal(got, want) {
			t.Errorf("%s: %v, error %v; want %v", pattern, got, err, want)
		}
	}
	if err := check(m); err != nil {
		t.Errorf("the model with names of modules is invalid: %v", err)
	}
	if sum, err := m.SHA256(); err != nil || sum == "" {
		t.Errorf("SHA256: %q, %v", sum, err)
	}
}

// TestModuleNamesBetween names what is computed between modules also where the exporter's optimiser
// has written a node without a record: a concatenation after its last operand, and past an Identity.
func TestModuleNamesBetween(t *testing.T) {
	b := NewBuilder(DefaultOpset)
	x := b.Input("x", Float, -1, 4)
	stem := b.Relu(x)
	joined := b.Concat(1, stem, x)
	same := b.Op("Identity", nil, joined)
	mean := b.ReduceMean(same, false, 1)
	b.Output("y", mean)
	b.Output("z", b.Op("Neg", nil, stem))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	scopes := map[string]string{"Relu": "['', 'stem', 'relu']", "Identity": "['', 'identity']", "ReduceMean": "['', 'mean']", "Neg": "['', 'neg']"}
	for _, n := range m.Nodes() {
		if scopes := scopes[n.GetOpType()]; scopes != "" {
			entry, err := proto.Marshal(&pb.StringStringEntryProto{Key: proto.String(scopesKey), Value: &scopes})
			if err != nil {
				t.Fatal(err)
			}
			n.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, fieldNodeMetadata, protowire.BytesType), entry))
		}
	}
	var names []string
	for _, n := range m.WithModuleNames().Nodes() {
		names = append(names, n.Output[0])
	}
	if want := []string{"stem", "stem.concat", "stem.identity", "y", "z"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}

// TestNoModuleNames leaves a model without records of modules as it is.
func TestNoModuleNames(t *testing.T) {
	t.Parallel()
	b := NewBuilder(17)
	b.Output("y", b.Relu(b.Input("x", Float, 1)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if m.WithModuleNames() != m {
		t.Error("the model was changed")
	}
}

func TestScopeList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"['', 'layer1', 'layer1.0', 'add']": {"layer1", "layer1.0"}, `["a'b", 'c', "add"]`: {"a'b", "c"}, "['', 'view']": {}, "[]": {}, "": {}, "['": {},
	} {
		if got := scopeList(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if scopes := moduleScopes(&pb.NodeProto{}); scopes != nil {
		t.Errorf("a node without metadata is in %q, want nil", scopes)
	}
}
