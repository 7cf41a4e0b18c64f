package main

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/study/open"
)

// TestTemplateQuotes checks that Template, which writes a study file for a model and data, quotes
// names and paths such that Parse reads the same ones, whatever characters they have.
func TestTemplateQuotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{
		"plain", "data #2", "a: b", `"quoted"`, "it's", "true", "False", "null", "no", "12", "-", "a\\b", "{a}", "[a]", "*a", "&a", "a, b", "é", " a ", "#", "%TAG", "@a", "a\nb",
	} {
		text, err := studyText(templateInfo{
			Name: name, Model: name + "/" + name + ".onnx", Data: name, LocalData: dir, Channels: 3, Classes: 10, Preprocess: name, PreprocessIsFile: true,
			Layers: []templateLayer{{name, "first"}}, Labels: []string{name, "b"}, UnknownOutputs: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := catalog.Parse("study.yaml", []byte(text), nil)
		if err != nil {
			t.Errorf("%q: %v\n%s", name, err, text)
			continue
		}
		data, model := s.Data[0], s.Models[0]
		if s.Name != name || data.Name != fileName(name) || data.Source.(*open.Images).Folder.String() != name || model.Name != name || model.ONNX.String() != name+"/"+name+".onnx" {
			t.Errorf("%q: the names in the study differ:\n%s", name, text)
		}
	}
}

// TestTemplateComments checks the comments that depend on the data: which of the model's outputs
// each label is, if that is unknown, and which samples come first.
func TestTemplateComments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		labels    []string // of the data
		has, lack string   // texts that the section data must have, and must not have
	}{
		{[]string{"cat", "dog"}, "in order: cat, dog\n", "..."},
		{[]string{"cat", "dog", "a: b", "cow"}, `in order: cat, dog, "a: b", ...` + "\n", "cow"},
		{nil, "the first samples by name\n", "limit: 1000"},
	} {
		text, err := studyText(templateInfo{Name: "s", Model: "m.onnx", Data: "d", LocalData: dir, Classes: 1000, Labels: c.labels, UnknownOutputs: c.labels != nil, Limit: 70, Preprocess: "none"})
		if err != nil {
			t.Fatal(err)
		}
		_, data, _ := strings.Cut(text, "\ndata:\n")
		data, _, _ = strings.Cut(data, "\nmodels:\n")
		if !strings.Contains(data, c.has) || strings.Contains(data, c.lack) {
			t.Errorf("%v: want %q and no %q in\n%s", c.labels, c.has, c.lack, data)
		}
	}
}

// TestFileName checks the default name of a model, given its path or its URL at Hugging Face (hf).
func TestFileName(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"a/net.v2.onnx": "net.v2", "a/model.onnx": "a", "a/onnx/model.onnx": "a", "model.onnx": "model", "onnx/model.onnx": "model",
		"hf://org/net.v2": "net.v2", "hf://org/net@main/onnx/model_fp16.onnx": "net"} {
		if got := fileName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
