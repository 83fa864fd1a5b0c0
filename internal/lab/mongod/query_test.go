package mongod_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// extended reads a document from relaxed extended JSON.
func extended(t *testing.T, s string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(s), false, &d); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return d
}

func shown(t *testing.T, d bson.D) string {
	t.Helper()
	b, err := bson.MarshalExtJSON(d, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMongo_Queries(t *testing.T) {
	m := startMongo(t, mongod.Options{})
	c := dial(t, m.URI(m.Addr())).Database("d").Collection("c")
	for _, doc := range []string{
		`{"_id":1,"a":{"b":1,"c":"x"},"tags":["red","blue"],"n":5}`,
		`{"_id":2,"a":{"b":2},"tags":["blue"],"n":10}`,
		`{"_id":3,"list":[{"k":1},{"k":7}],"n":null}`,
	} {
		must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), extended(t, doc)))
	}
	for _, tt := range []struct {
		query string
		want  []int32
	}{
		{`{}`, []int32{1, 2, 3}},
		{`{"a.b":2}`, []int32{2}},
		{`{"a.b":{"$gte":1}}`, []int32{1, 2}},
		{`{"tags":"blue"}`, []int32{1, 2}},
		{`{"tags":{"$all":["blue","red"]}}`, []int32{1}},
		{`{"tags":{"$size":1}}`, []int32{2}},
		{`{"list.k":7}`, []int32{3}},
		{`{"list.0.k":7}`, nil},
		{`{"list.1.k":7}`, []int32{3}},
		{`{"n":null}`, []int32{3}},
		{`{"a":null}`, []int32{3}},
		{`{"n":{"$exists":true}}`, []int32{1, 2, 3}},
		{`{"a.c":{"$exists":false}}`, []int32{2, 3}},
		{`{"n":{"$ne":5}}`, []int32{2, 3}},
		{`{"n":{"$in":[5,10]}}`, []int32{1, 2}},
		{`{"n":{"$nin":[5]}}`, []int32{2, 3}},
		{`{"$or":[{"n":5},{"list.k":1}]}`, []int32{1, 3}},
		{`{"$and":[{"n":5},{"a.b":1}]}`, []int32{1}},
		{`{"$nor":[{"n":5}]}`, []int32{2, 3}},
		{`{"n":{"$not":{"$gt":7}}}`, []int32{1, 3}},
		{`{"tags":{"$regex":"^RE","$options":"i"}}`, []int32{1}},
	} {
		var found []struct {
			ID int32 `bson:"_id"`
		}
		cursor, err := c.Find(t.Context(), extended(t, tt.query), options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		if err == nil {
			err = cursor.All(t.Context(), &found)
		}
		var got []int32
		for _, f := range found {
			got = append(got, f.ID)
		}
		if err != nil || len(got) != len(tt.want) || len(got) > 0 && got[0] != tt.want[0] || len(got) > 1 && got[len(got)-1] != tt.want[len(got)-1] {
			t.Errorf("%s found %v, %v; want %v", tt.query, got, err, tt.want)
		}
	}
	for projection, want := range map[string]string{
		`{"n":1}`:           `{"_id":1,"n":5}`,
		`{"n":1,"_id":0}`:   `{"n":5}`,
		`{"a.c":1,"_id":0}`: `{"a":{"c":"x"}}`,
		`{"a":0,"tags":0}`:  `{"_id":1,"n":5}`,
		`{"a.c":0,"n":0}`:   `{"_id":1,"a":{"b":1},"tags":["red","blue"]}`,
		`{"_id":0,"n":0}`:   `{"a":{"b":1,"c":"x"},"tags":["red","blue"]}`,
		`{"_id":1}`:         `{"_id":1}`,
	} {
		var got bson.D
		if err := c.FindOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, options.FindOne().SetProjection(extended(t, projection))).Decode(&got); err != nil {
			t.Fatalf("%s: %v", projection, err)
		}
		if shown(t, got) != want {
			t.Errorf("%s gave %s, want %s", projection, shown(t, got), want)
		}
	}
	var counted []bson.D
	cursor := must[*mongo.Cursor](t)(c.Aggregate(t.Context(), bson.A{
		bson.D{{Key: "$match", Value: extended(t, `{"n":{"$gt":1}}`)}}, bson.D{{Key: "$count", Value: "total"}}}))
	if err := cursor.All(t.Context(), &counted); err != nil || len(counted) != 1 || shown(t, counted[0]) != `{"total":2}` {
		t.Errorf("counted %v, %v", counted, err)
	}
}

func TestMongo_Updates(t *testing.T) {
	// A set, whose data comes of the oplog: what a diff loses would be missing.
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.URI())
	c := client.Database("d").Collection("c", options.Collection().SetWriteConcern(atLeast(3)))
	secondary := dial(t, set.Member("c").URI()).Database("d").Collection("c")
	for _, tt := range []struct{ before, change, want string }{
		{`{"_id":1}`, `{"$set":{"a.b":1}}`, `{"_id":1,"a":{"b":1}}`},
		{`{"_id":1,"a":{"b":1,"c":2}}`, `{"$unset":{"a.b":""}}`, `{"_id":1,"a":{"c":2}}`},
		{`{"_id":1,"a":[1,2]}`, `{"$set":{"a.1":9}}`, `{"_id":1,"a":[1,9]}`},
		{`{"_id":1,"n":2}`, `{"$inc":{"n":3},"$set":{"m":1}}`, `{"_id":1,"n":5,"m":1}`},
		{`{"_id":1,"n":2}`, `{"$mul":{"n":3}}`, `{"_id":1,"n":6}`},
		{`{"_id":1}`, `{"$mul":{"n":3}}`, `{"_id":1,"n":0}`},
		{`{"_id":1,"n":2}`, `{"$min":{"n":1},"$max":{"m":4}}`, `{"_id":1,"n":1,"m":4}`},
		{`{"_id":1}`, `{"$push":{"l":1}}`, `{"_id":1,"l":[1]}`},
		{`{"_id":1,"l":[1]}`, `{"$push":{"l":{"$each":[2,3]}}}`, `{"_id":1,"l":[1,2,3]}`},
		{`{"_id":1,"l":[1]}`, `{"$addToSet":{"l":{"$each":[1,2]}}}`, `{"_id":1,"l":[1,2]}`},
		{`{"_id":1,"l":[1,2,1]}`, `{"$pull":{"l":1}}`, `{"_id":1,"l":[2]}`},
		{`{"_id":1,"l":[1,2,3]}`, `{"$pop":{"l":1}}`, `{"_id":1,"l":[1,2]}`},
		{`{"_id":1,"a":1,"z":2}`, `{"$rename":{"a":"b"}}`, `{"_id":1,"z":2,"b":1}`},
		{`{"_id":1,"a":1}`, `{"x":1}`, `{"_id":1,"x":1}`},
	} {
		must[*mongo.DeleteResult](t)(c.DeleteMany(t.Context(), bson.D{}))
		must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), extended(t, tt.before)))
		var err error
		if change := extended(t, tt.change); change[0].Key[0] == '$' {
			_, err = c.UpdateOne(t.Context(), bson.D{}, change)
		} else {
			_, err = c.ReplaceOne(t.Context(), bson.D{}, change)
		}
		if err != nil {
			t.Errorf("%s on %s: %v", tt.change, tt.before, err)
			continue
		}
		var here, there bson.D
		if err := c.FindOne(t.Context(), bson.D{}).Decode(&here); err != nil {
			t.Fatal(err)
		}
		if err := secondary.FindOne(t.Context(), bson.D{}).Decode(&there); err != nil {
			t.Fatal(err)
		}
		if shown(t, here) != tt.want || shown(t, there) != tt.want {
			t.Errorf("%s on %s gave %s on the primary, %s on a secondary, want %s", tt.change, tt.before, shown(t, here), shown(t, there), tt.want)
		}
	}
}
