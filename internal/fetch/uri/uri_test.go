package uri

import "testing"

func TestIsURL(t *testing.T) {
	t.Parallel()
	if IsURL("models/a.onnx") || IsURL(`C:\models\a.onnx`) || IsURL("c:/x") || !IsURL("s3://b/x") {
		t.Error("IsURL mistakes a path for a URL, or a URL for a path")
	}
}

// Two addresses of the hub that differ in the revision only are those of the same model.
func TestSameModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"hf://org/net", "hf://org/net@v1", true},
		{"hf://org/net@v2/onnx/model.onnx", "hf://org/net/onnx/model.onnx", true},
		{"hf://org/net", "hf://org/net/onnx/model.onnx", false},
		{"hf://org/net", "hf://org/other", false},
		{"hf://org/net", "hf://datasets/org/net", false},
		{"hf://datasets/org/net", "hf://datasets/org/net@v1", false},
		{"models/a.onnx", "models/a.onnx", true},
		{"models/a.onnx", "models/b.onnx", false},
	} {
		if got := SameModel(c.a, c.b); got != c.want {
			t.Errorf("SameModel(%q, %q) is %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
