package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.ProcessBuilder.Redirect;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Tests of the API against a real Latchkey: mvn test */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class ApiTest {
    private static final Map<String, String> SETTINGS = Map.of(
            "AUTH_ANONYMOUS_ENABLED", "true", "AUTH_TOKEN_CLAIMS", "{\"roles\": \"app_metadata.roles\"}");
    private static final HttpClient http = HttpClient.newHttpClient();
    private static final JsonMapper json = new JsonMapper();
    private static String control, key, latchkey;

    @LocalServerPort
    private int port;

    /** The test server ends with this process, which holds its standard input. */
    @DynamicPropertySource
    static void start(DynamicPropertyRegistry properties) throws Exception {
        var command = System.getenv().getOrDefault("LATCHKEY_COMMAND", "latchkey");
        var process = new ProcessBuilder(command, "test-server", "--json").redirectError(Redirect.INHERIT).start();
        var server = json.readTree(process.inputReader().readLine());
        key = server.get("key").asString();
        control = server.get("control").asString();
        var service = ask("/start", Map.of("settings", SETTINGS));
        control = service.get("control").asString();
        latchkey = service.get("url").asString();
        properties.add("latchkey.url", () -> latchkey);
        properties.add("LATCHKEY_SERVICE_ROLE_KEY", () -> service.get("service_role_key").asString());
    }

    @BeforeEach
    void reset() throws Exception {
        ask("/reset", Map.of());
    }

    private static JsonNode ask(String act, Map<String, ?> members) throws Exception {
        var response = send(control + act, key, json.writeValueAsString(members));
        assertEquals(200, response.statusCode(), response.body());
        return json.readTree(response.body());
    }

    private static String token(JsonNode user, Map<String, ?> options) throws Exception {
        var members = new HashMap<String, Object>(options);
        members.put("user_id", user.get("id").asString());
        return ask("/token", members).get("access_token").asString();
    }

    private static HttpResponse<String> send(String url, String token, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url)).header("Authorization", "Bearer " + token);
        if (body != null) {
            request.POST(BodyPublishers.ofString(body));
        }
        return http.send(request.build(), BodyHandlers.ofString());
    }

    private HttpResponse<String> get(String path, String token) throws Exception {
        return send("http://127.0.0.1:" + port + path, token, null);
    }

    private int pay(String token) throws Exception {
        return send("http://127.0.0.1:" + port + "/payments", token, "").statusCode();
    }

    @Test
    void userIsKnownByTheToken() throws Exception {
        var alice = ask("/user", Map.of());
        var answer = json.readTree(get("/me", token(alice, Map.of())).body());
        assertEquals(alice.get("id"), answer.get("id"));
        assertEquals(alice.get("email"), answer.get("email"));
        assertEquals(401, get("/me", token(alice, Map.of("expires_in", -60))).statusCode());
    }

    @Test
    void reportsAreForAdministratorsWithASecondStep() throws Exception {
        var carol = ask("/user", Map.of("role", "admin", "factors", List.of("totp")));
        assertEquals(200, get("/reports", token(carol, Map.of())).statusCode());
        assertEquals(401, get("/reports", token(carol, Map.of("aal", "aal1"))).statusCode());
        for (var members : List.of(Map.of("factors", List.of("totp")), Map.of("role", "admin"))) {
            assertEquals(403, get("/reports", token(ask("/user", members), Map.of())).statusCode());
        }
    }

    @Test
    void draftsAreForEditors() throws Exception {
        // Users write user_metadata themselves.
        var written = Map.of("roles", List.of("editor"));
        var expected = Map.of(List.of(), 403, List.of("reader", "editors"), 403, List.of("reader", "editor"), 200);
        for (var roles : expected.keySet()) {
            var members = Map.of("app_metadata", Map.of("roles", roles), "user_metadata", written);
            var token = token(ask("/user", members), Map.of());
            assertEquals(expected.get(roles), get("/drafts", token).statusCode());
        }
    }

    @Test
    void anonymousUsersCannotPay() throws Exception {
        var token = token(ask("/user", Map.of("anonymous", true)), Map.of());
        assertEquals(403, pay(token));
        assertEquals(200, get("/me", token).statusCode());
    }

    @Test
    void logOutEndsPaymentsAtOnce() throws Exception {
        var token = token(ask("/user", Map.of()), Map.of());
        assertEquals(200, pay(token));
        ask("/fail", Map.of("request", "POST /introspect"));
        assertEquals(503, pay(token));
        assertEquals(200, send(latchkey + "/logout", token, "").statusCode());
        assertEquals(401, pay(token));
    }
}
