package recipe

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plainText is a training file, which holds the settings of a training, for images.
const plainText = `name: plain
data: {name: shapes, shapes: {n: 120, size: 12}}
validation: 0.2
test: {name: test, shapes: {n: 40, size: 12, seed: 2}}
network: {convnet: {widths: [8, 12], depth: 1, dropout: 0.2}}
preprocess: {mean: 0.5, std: 0.25}
augment: [{flip: {}}, {affine: {rotate: [-20, 20]}}]
optimiser: {sgd: {rate: 0.05, momentum: 0.9}}
schedule: {cosine: {warmup: 1}}
epochs: 3
batch: 20
save-every: 2
`

func TestParseErrors(t *testing.T) {
	t.Parallel()
	// A change is a text of plainText, " -> ", and what replaces it. Errors in the syntax of YAML
	// name the file only.
	for change, want := range map[string]string{
		"epochs: 3 -> epochs: 0":                                                      "epochs",
		"epochs: 3 -> epoch: 3":                                                       "epochs",
		"validation: 0.2 -> validation: 2":                                            "fraction between 0 and 1",
		"validation: 0.2 -> validation: {shapes: 3}":                                  "name",
		"convnet: -> vit:":                                                            "vit",
		"{convnet: -> {mlp: 3, convnet:":                                              "one of convnet",
		"sgd: {rate: 0.05, -> sgd: {rate: 0.05, adam:":                                "adam",
		"optimiser: {sgd -> optimiser: {adam: 1, sgd":                                 "one of sgd",
		"{cosine: {warmup: 1}} -> linear":                                             "linear",
		"{cosine: {warmup: 1}} -> {steps: {at: [2]}}":                                 "between 0 and 1",
		"[-20, 20] -> {values: [1, 2]}":                                               "write [low, high]",
		"{flip: {}} -> {flip: {}, per: trial}":                                        "leave out per and on",
		"batch: 20 -> loss: squared-error":                                            "name a factor",
		"batch: 20 -> {batch: 20}":                                                    "plain.yaml",
		"batch: 20 -> patience: -1":                                                   "patience",
		"batch: 20 -> adversarial: {radius: 0}":                                       "above 0",
		"batch: 20 -> adversarial: {steps: 3}":                                        "radius",
		"batch: 20 -> adversarial: {radius: 0.1, defence: fgsm}":                      "fgsm",
		"batch: 20 -> adversarial: {radius: 0.1, defence: mart, random-start: false}": "no gradient",
		"batch: 20 -> {adversarial: {radius: 0.1, defence: trades}, target: x}":       "plain.yaml",
		"batch: 20 -> take-back: 1.5":                                                 "between 0 and 1", // a factor of the learning rate
	} {
		from, to, _ := strings.Cut(change, " -> ")
		text := strings.Replace(plainText, from, to, 1)
		if text == plainText {
			t.Fatalf("%s: the text to replace does not occur", change)
		}
		_, err := Parse("plain.yaml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "plain.yaml:") {
			t.Errorf("%s: error %v, want one line with %q", change, err, want)
		}
	}
}

// TestRepositoryFiles checks that all training files of the repository can be parsed, with values
// for the variables that have no default. A file uses a variable as ${NAME}.
func TestRepositoryFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../papers/*/training/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("the training files of the papers: %v, %v", files, err)
	}
	networks, err := filepath.Glob("../../demo/networks/*.yaml")
	if err != nil || len(networks) != 3 {
		t.Fatalf("the demo's training files: %v, %v", networks, err)
	}
	variables := map[string]string{"START": "start.onnx", "CIFAR10": "cifar10", "PICTURES": "photos", "FSDD": "fsdd", "MNIST": "mnist", "DATA": "train.bin", "SEED": "1", "NOISE": "0.1"}
	for _, path := range append(files, networks...) {
		if _, err := Load(path, variables); err != nil {
			t.Error(err)
		}
	}
}

// TestRepositoryFilesAtFullSize checks that every training file can be parsed with the variables of
// its full size, where TESTED is the number of test images, and FEW and MORE are smaller numbers of
// training images. Those for CIFAR-10 take all of its training images, and have variables for the
// epochs and the network's size.
func TestRepositoryFilesAtFullSize(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../papers/*/training/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	full := map[string]string{"CIFAR10": "cifar10", "PICTURES": "photos", "FSDD": "fsdd", "MNIST": "mnist", "DATA": "train.bin", "SEED": "1", "NOISE": "0.1",
		"SAMPLES": "50000", "IMAGES": "50000", "VALIDATION": "test_batch.bin", "EPOCHS": "200", "TESTED": "10000", "WIDTH": "64",
		"WIDTH1": "64", "WIDTH2": "128", "WIDTH3": "256", "WIDTH4": "512", "BLOCKS": "2", "FEW": "5000", "MORE": "20000", "RADIUS": "1", "ITERS": "10"}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if _, err := Load(path, full); err != nil {
			t.Error(err)
		}
		if !strings.Contains(text, "${CIFAR10}") {
			continue
		}
		sized := strings.Contains(text, "${WIDTH") || strings.Contains(text, "${BLOCKS") || strings.Contains(text, "autoencoder:")
		if !strings.Contains(text, "part: train}") || !strings.Contains(text, "${EPOCHS") || !sized {
			t.Errorf("%s: it must take the part train, all training images, and needs variables for the epochs and the size of the network", path)
		}
	}
}

func TestSchemaIsPublished(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile("../../../docs/training.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(published), schema) {
		t.Error("docs/training.schema.json is not what `noether schema --training` prints; make schemas renews it")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(plainText))
	f.Add([]byte("name: x\ndata: {name: a, cifar10: f}\nnetwork: {onnx: {file: m, parameters: '*'}}\noptimiser: {adamw: 1e-3}\nschedule: {steps: {at: 0.5}}\nepochs: 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("t.yaml", text, map[string]string{})
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
		if err == nil && file.Epochs < 1 {
			t.Error("a parsed training has no epochs")
		}
	})
}
