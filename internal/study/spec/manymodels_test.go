package spec_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// An entry with a glob or a list becomes an entry for each file, folder or address.
func TestManyModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"zoo/b.onnx", "zoo/a.onnx", "zoo/notes.txt", "runs/x/model.onnx", "runs/y/model.onnx", "odd[1].onnx"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for models, want := range map[string][]string{ // name, address and first layer of each
		"{onnx: zoo/*.onnx, layers: [output]}":                    {"a zoo/a.onnx output", "b zoo/b.onnx output"},
		"{onnx: 'runs/*/model.onnx', name: mine}":                 {"mine/x runs/x/model.onnx ", "mine/y runs/y/model.onnx "},
		"{onnx: '" + dir + "/zoo/?.onnx'}":                        {"a " + dir + "/zoo/a.onnx ", "b " + dir + "/zoo/b.onnx "},
		"{onnx: [zoo/b.onnx, 'hf://timm/resnet18.a1_in1k']}":      {"b zoo/b.onnx ", "resnet18.a1_in1k hf://timm/resnet18.a1_in1k "},
		"{onnx: ['runs/*/model.onnx', zoo/a.onnx], name: m}":      {"m/x runs/x/model.onnx ", "m/y runs/y/model.onnx ", "m/a zoo/a.onnx "},
		"{name: odd, onnx: 'odd[1].onnx'}":                        {"odd odd[1].onnx "}, // the file of that name
		"{name: gone, onnx: 'gone[1.onnx'}":                       {"gone gone[1.onnx "},
		"{url: ['http://h/v2/models/p', 'http://h/v2/models/q']}": {"p http://h/v2/models/p ", "q http://h/v2/models/q "},
		"{python: ['m:first', 'm:second']}":                       {"first m:first ", "second m:second "},
		"[{name: z, onnx: z.onnx}, {onnx: 'zoo/a*'}]":             {"z z.onnx ", "a zoo/a.onnx "},
	} {
		s, err := checkpointStudy(dir, models)
		if err != nil {
			t.Errorf("%s: %v", models, err)
			continue
		}
		var got []string
		for _, m := range s.Models {
			got = append(got, m.Name+" "+m.Address().String()+" "+strings.Join(m.Layers, ","))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", models, got, want)
		}
	}
	for models, want := range map[string]string{
		"{onnx: 'none/*.onnx'}":                           `s.yaml:4:16: no file matches "none/*.onnx"`,
		"{onnx: 'zoo/**.onnx'}":                           "write a pattern for each folder",
		"{onnx: 'zoo/[.onnx'}":                            "is not a glob",
		"{onnx: []}":                                      "the list is empty",
		"{onnx: 'zoo/*.onnx', sha256: ab}":                "stands for several",
		"{onnx: [zoo/a.onnx, zoo/a.onnx]}":                `"a"`,
		"{onnx: [[a]]}":                                   "s.yaml:4:17",
		"{onnx: z.onnx}":                                  "name",
		"{onnx: 'zoo/*.onnx', activations: recorded/one}": "leave out onnx or activations",
	} {
		if _, err := checkpointStudy(dir, models); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", models, err, want)
		}
	}
}
