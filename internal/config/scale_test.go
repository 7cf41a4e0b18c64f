package config

import (
	"strings"
	"testing"
)

const scaled = `name: s
epochs: 12
network: {resnet: {depth: 18, width: 8}}
models: [{name: a}, {name: b, layers: all}]
limit: ${LIMIT:-5}
vary: {data.limit: [1]}
scales:
  paper: {epochs: 200, network.resnet.width: 64, models.1.layers: none, network.extra: [1], models.0: {name: c}, vary.data.limit: [2]}
  huge: {limit: "${BIG:-7}", name: h}
`

// The variable SCALE chooses among the scales of a file.
func TestScales(t *testing.T) {
	t.Parallel()
	for scale, want := range map[string]string{
		"":      "name: s\nepochs: 12\nnetwork:\n  resnet:\n    depth: 18\n    width: 8\nmodels:\n  - name: a\n  - name: b\n    layers: all\nlimit: 5\nvary:\n  data.limit:\n    - 1\n",
		"small": "name: s\nepochs: 12\nnetwork:\n  resnet:\n    depth: 18\n    width: 8\nmodels:\n  - name: a\n  - name: b\n    layers: all\nlimit: 5\nvary:\n  data.limit:\n    - 1\n",
		"paper": "name: s\nepochs: 200\nnetwork:\n  resnet:\n    depth: 18\n    width: 64\n  extra:\n    - 1\nmodels:\n  - name: c\n  - name: b\nlimit: 5\nvary:\n  data.limit:\n    - 2\n",
		"huge":  "name: h\nepochs: 12\nnetwork:\n  resnet:\n    depth: 18\n    width: 8\nmodels:\n  - name: a\n  - name: b\n    layers: all\nlimit: 7\nvary:\n  data.limit:\n    - 1\n",
	} {
		n, err := ParseScaled("s.yaml", []byte(scaled), map[string]string{"SCALE": scale})
		if err != nil {
			t.Errorf("%q: %v", scale, err)
			continue
		}
		if got, err := Encode(n); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", scale, got, err)
		}
	}
	for change, want := range map[string]string{
		"paper: { -> small: {":                           `the scale "small" is the file as it is written`,
		"epochs: 200 -> epoch.x: 200":                    `"epoch.x" cannot vary: the file has no key "epoch"`,
		"epochs: 200 -> epochs.x: 200":                   `the file has no mapping with the key "x"`,
		"models.0: -> models.7:":                         "the list has no item 7",
		"huge: {limit -> huge: {name.x: 1, limit":        `"name.x" cannot vary`, // of a scale that is not chosen
		`huge: {limit: "${BIG:-7}", name: h} -> huge: 3`: "a scale is a mapping",
		"SCALE": "the variable SCALE is \"papr\": this file has the scales small, paper, huge",
	} {
		from, to, _ := strings.Cut(change, " -> ")
		text, scale := strings.Replace(scaled, from, to, 1), "paper"
		if change == "SCALE" {
			scale = "papr"
		} else if text == scaled {
			t.Fatalf("%s: the text to replace does not occur", change)
		}
		if _, err := ParseScaled("s.yaml", []byte(text), map[string]string{"SCALE": scale}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
	// Other files do not have the key.
	if n, err := ParseScaled("s.yaml", []byte("name: s\n"), map[string]string{"SCALE": "paper"}); err != nil || len(n.Pairs) != 1 {
		t.Errorf("without scales: %+v, %v", n, err)
	}
}
