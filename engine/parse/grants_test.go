package parse

import "testing"

func TestShowGrants(t *testing.T) {
	for text, user := range map[string]string{
		"SHOW GRANTS":                         "",
		"show grants for current_user":        "",
		"SHOW GRANTS FOR CURRENT_USER()":      "",
		"SHOW GRANTS FOR bob":                 "bob",
		"SHOW GRANTS FOR 'bob'@'%'":           "bob",
		"SHOW GRANTS FOR 'b''ob'@`localhost`": "b'ob",
	} {
		stmt, rest, err := Parse(text)
		g, ok := stmt.(*ShowGrants)
		if err != nil || !ok || rest != "" || g.User != user {
			t.Errorf("%s: %#v, %v", text, stmt, err)
		}
	}
	for _, text := range []string{"SHOW GRANTS FOR", "SHOW GRANTS ON t", "SHOW GRANTS FOR CURRENT_USER(1)"} {
		if stmt, _, err := Parse(text); err == nil {
			t.Errorf("%s gives %#v", text, stmt)
		}
	}
}
