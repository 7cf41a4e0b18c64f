// Package junittest validates the XML of JUnit in tests, by the schema of Jenkins' xUnit plugin.
//
// The schema, junit-10.xsd, is that of github.com/jenkinsci/xunit-plugin at commit 8c515de2804b,
// unchanged, under the MIT licence at its head.
package junittest

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//go:embed junit-10.xsd
var schemaFile []byte

// A node is an element of XML with its attributes, elements and text.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []node     `xml:",any"`
	Text     string     `xml:",chardata"`
}

func (n node) attr(name string) string {
	i := slices.IndexFunc(n.Attrs, func(a xml.Attr) bool { return a.Name.Local == name })
	if i < 0 {
		return ""
	}
	return n.Attrs[i].Value
}

// children returns the elements of a name.
func (n node) children(name string) (out []node) {
	for _, c := range n.Children {
		if c.XMLName.Local == name {
			out = append(out, c)
		}
	}
	return out
}

// A schema has the elements, complex types and patterns of simple types of an XSD by name. What it
// does not know of XSD is an error, so that nothing passes unread.
type schema struct {
	elements, types map[string]node
	patterns        map[string]*regexp.Regexp
}

func newSchema(root node) (*schema, error) {
	s := &schema{map[string]node{}, map[string]node{}, map[string]*regexp.Regexp{"xs:string": regexp.MustCompile("")}}
	for _, c := range root.Children {
		switch name := c.attr("name"); c.XMLName.Local {
		case "element":
			s.elements[name] = c
		case "complexType":
			s.types[name] = c
		case "simpleType":
			r := c.children("restriction")[0]
			if len(r.Children) != 1 || r.Children[0].XMLName.Local != "pattern" || r.attr("base") != "xs:string" {
				return nil, fmt.Errorf("the simple type %s is no pattern of a string", name)
			}
			p, err := regexp.Compile("^(" + r.Children[0].attr("value") + ")$")
			if err != nil {
				return nil, err
			}
			s.patterns[name] = p
		default:
			return nil, fmt.Errorf("the schema has a %s, which is not known here", c.XMLName.Local)
		}
	}
	return s, nil
}

// content returns the regular expression of the names of elements that a particle of a complex type
// allows, each with a space after it.
func (s *schema) content(particle node) (string, error) {
	var parts []string
	for _, c := range particle.Children {
		part, err := "", error(nil)
		switch c.XMLName.Local {
		case "element":
			part = regexp.QuoteMeta(c.attr("ref")+c.attr("name")) + " "
		case "sequence", "choice":
			part, err = s.content(c)
		default:
			err = fmt.Errorf("a particle %s is not known here", c.XMLName.Local)
		}
		if err != nil {
			return "", err
		}
		least, most := c.attr("minOccurs"), c.attr("maxOccurs")
		quantifier, ok := map[[2]string]string{{"", ""}: "", {"0", ""}: "?", {"0", "1"}: "?", {"0", "unbounded"}: "*", {"1", "unbounded"}: "+"}[[2]string{least, most}]
		if !ok {
			return "", fmt.Errorf("minOccurs %q with maxOccurs %q is not known here", least, most)
		}
		parts = append(parts, "("+part+")"+quantifier)
	}
	between := ""
	if particle.XMLName.Local == "choice" {
		between = "|"
	}
	return strings.Join(parts, between), nil
}

// validate returns the first violation in an element.
func (s *schema) validate(n node) error {
	declared, ok := s.elements[n.XMLName.Local]
	if !ok {
		return fmt.Errorf("<%s> is no element of the schema", n.XMLName.Local)
	}
	kind, ok := s.types[declared.attr("type")]
	if own := declared.children("complexType"); len(own) == 1 {
		kind, ok = own[0], true
	}
	if !ok { // text
		if declared.attr("type") != "xs:string" || len(n.Attrs)+len(n.Children) > 0 {
			return fmt.Errorf("<%s> of type %q has %d attributes and %d elements", n.XMLName.Local, declared.attr("type"), len(n.Attrs), len(n.Children))
		}
		return nil
	}
	particles := slices.DeleteFunc(slices.Clone(kind.Children), func(c node) bool { return c.XMLName.Local == "attribute" })
	for _, a := range kind.children("attribute") {
		name := a.attr("name")
		i := slices.IndexFunc(n.Attrs, func(b xml.Attr) bool { return b.Name.Local == name })
		pattern, ok := s.patterns[a.attr("type")]
		switch {
		case !ok:
			return fmt.Errorf("the type %s is not known here", a.attr("type"))
		case i < 0 && a.attr("use") == "required":
			return fmt.Errorf("<%s> has no %s", n.XMLName.Local, name)
		case i >= 0 && !pattern.MatchString(n.Attrs[i].Value):
			return fmt.Errorf("%s of <%s> is %q, and must match %s", name, n.XMLName.Local, n.Attrs[i].Value, pattern)
		}
	}
	for _, b := range n.Attrs {
		if !slices.ContainsFunc(kind.children("attribute"), func(a node) bool { return a.attr("name") == b.Name.Local }) {
			return fmt.Errorf("<%s> has an attribute %s", n.XMLName.Local, b.Name.Local)
		}
	}
	if strings.TrimSpace(n.Text) != "" && kind.attr("mixed") != "true" {
		return fmt.Errorf("<%s> has text %q", n.XMLName.Local, n.Text)
	}
	allowed, err := s.content(node{Children: particles})
	if err != nil {
		return err
	}
	var names strings.Builder
	for _, c := range n.Children {
		names.WriteString(c.XMLName.Local + " ")
	}
	if !regexp.MustCompile("^(" + allowed + ")$").MatchString(names.String()) {
		return fmt.Errorf("<%s> has the elements %s", n.XMLName.Local, names.String())
	}
	for _, c := range n.Children {
		if err := s.validate(c); err != nil {
			return err
		}
	}
	return nil
}

// Validate returns the first violation of the schema in a file, or nil.
func Validate(file []byte) error {
	var definition, root node
	if err := xml.Unmarshal(schemaFile, &definition); err != nil {
		return err
	}
	s, err := newSchema(definition)
	if err != nil {
		return err
	}
	d := xml.NewDecoder(bytes.NewReader(file))
	if err := d.Decode(&root); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		if _, err = d.Token(); err != io.EOF { // after the last line break
			return fmt.Errorf("the file goes on after </%s>", root.XMLName.Local)
		}
	}
	return s.validate(root)
}

// Check reports a violation of the schema as an error of a test.
func Check(t testing.TB, file []byte) {
	t.Helper()
	if err := Validate(file); err != nil {
		t.Errorf("JUnit's schema: %v in\n%s", err, file)
	}
}
