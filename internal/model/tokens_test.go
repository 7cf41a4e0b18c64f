package model_test

import (
	"errors"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/tensor"
)

// TestTokensOf checks the layout of t tokens of a network that divides an image into h x w patches.
// The prefix is the number of tokens without a position, such as class, distillation and register
// tokens; the others form a grid. The numbers of tokens are those of the published models.
func TestTokensOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		t, h, w int
		want    *tensor.Tokens
	}{
		{"ViT-B/16 and CLIP, images of 224 x 224", 197, 14, 14, &tensor.Tokens{Prefix: 1, Height: 14, Width: 14}},
		{"DeiT with distillation", 198, 14, 14, &tensor.Tokens{Prefix: 2, Height: 14, Width: 14}},
		{"DINOv2 with registers", 261, 16, 16, &tensor.Tokens{Prefix: 5, Height: 16, Width: 16}},
		{"DINOv3, images of 256 x 256", 261, 16, 16, &tensor.Tokens{Prefix: 5, Height: 16, Width: 16}},
		{"no prefix", 196, 14, 14, &tensor.Tokens{Height: 14, Width: 14}},
		{"a rectangle", 1 + 8*24, 8, 24, &tensor.Tokens{Prefix: 1, Height: 8, Width: 24}},
		{"Swin, second stage", 28 * 28, 56, 56, &tensor.Tokens{Height: 28, Width: 28}},
		{"Swin, last stage", 49, 56, 56, &tensor.Tokens{Height: 7, Width: 7}},
		{"text", 77, 14, 14, nil},
		{"one token", 1, 14, 14, nil},
	} {
		got := model.TokensOf(c.t, c.h, c.w)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestTokensOfTransformer checks that the layout of the tokens is found in each NTC layer (batch,
// tokens, channels) of an exported vision transformer, and that the option Tokens with a layout of
// another number of tokens is an error.
func TestTokensOfTransformer(t *testing.T) {
	t.Parallel()
	path := testdata.Path(t, "nets", "tiny_vit", "model.onnx")
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, l := range m.Layers() {
		if l.Axes != "NTC" {
			continue
		}
		maps, why := l.Maps() // where the grid is among the values, or why there is none
		if l.Tokens == nil || l.Tokens.Height*l.Tokens.Width+l.Tokens.Prefix != l.Shape[0] || l.Tokens.Prefix > 1 || why != "" {
			t.Errorf("%s of shape %v: tokens %+v, maps %+v %s; want a grid and a prefix of at most 1", l.Name, l.Shape, l.Tokens, maps, why)
		}
		found++
	}
	if found < 10 {
		t.Errorf("%d layers of tokens, want at least 10", found)
	}
	_, err = modeltest.Open(t, path, model.Options{Layers: []string{"all"}, Tokens: &tensor.Tokens{Prefix: 3, Height: 5, Width: 5}})
	var setting *model.SettingError
	if !errors.As(err, &setting) || setting.Path[0] != "tokens" {
		t.Errorf("error %v, want one about the setting tokens", err)
	}
}

// TestTokensOfExports checks the layout of the tokens of small transformers with the structure of
// published ones, exported from PyTorch by testdata/tokens/tokens.py. Their patches are a grid of
// 4 x 6.
func TestTokensOfExports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ prefix, minLayers int }{
		"deit": {2, 20}, "dinov2": {5, 20}, "dinov3": {5, 20}, "clip": {1, 5},
	} {
		m, err := modeltest.Open(t, "testdata/tokens/"+name+".onnx", model.Options{Layers: []string{"all"}})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, l := range m.Layers() {
			if l.Axes != "NTC" || l.Shape[0] != c.prefix+24 {
				continue
			}
			found++
			// Where the tokens of the grid are among the values of the layer: from Base on.
			maps, why := l.Maps()
			if l.Tokens == nil || *l.Tokens != (tensor.Tokens{Prefix: c.prefix, Height: 4, Width: 6}) || why != "" || maps.Base != c.prefix*l.Shape[1] || maps.Positions() != 24 {
				t.Errorf("%s: %s of shape %v: tokens %+v, maps %+v %s; want a prefix of %d and a grid of 4 x 6", name, l.Name, l.Shape, l.Tokens, maps, why, c.prefix)
			}
		}
		if found < c.minLayers {
			t.Errorf("%s: %d layers of %d tokens, want at least %d", name, found, c.prefix+24, c.minLayers)
		}
		for _, l := range m.Layers() {
			if l.Axes == "NTC" && l.Shape[0] > 5 && l.Tokens == nil {
				t.Errorf("%s: the tokens of %s, of shape %v, are not known", name, l.Name, l.Shape)
			}
		}
	}
}
