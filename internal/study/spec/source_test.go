package spec

import (
	"reflect"
	"testing"
)

// TestEverySourceOpens checks that each kind of source of an entry of data, a field of Data that
// points to the keys of that kind, implements opener.
func TestEverySourceOpens(t *testing.T) {
	t.Parallel()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Data]()) {
		key := f.Tag.Get("key")
		if !f.IsExported() || f.Type.Kind() != reflect.Pointer || key == "corrupt" || key == "split" { // the two pointers that are no sources
			continue
		}
		if !f.Type.Implements(reflect.TypeFor[opener]()) {
			t.Errorf("%s: %v has no method open; add it, as internal/study/spec/source.go does for the others", key, f.Type)
		}
	}
}
