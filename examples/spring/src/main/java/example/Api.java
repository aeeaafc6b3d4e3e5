package example;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletResponse;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.security.oauth2.server.resource.autoconfigure.servlet.JwkSetUriJwtDecoderBuilderCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.security.access.AccessDeniedException;
import org.springframework.security.access.prepost.PreAuthorize;
import org.springframework.security.authentication.AuthenticationServiceException;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.method.configuration.EnableMethodSecurity;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.core.OAuth2Error;
import org.springframework.security.oauth2.core.OAuth2TokenValidator;
import org.springframework.security.oauth2.core.OAuth2TokenValidatorResult;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.security.oauth2.jwt.JwtTimestampValidator;
import org.springframework.security.oauth2.server.resource.InvalidBearerTokenException;
import org.springframework.security.oauth2.server.resource.web.BearerTokenAuthenticationEntryPoint;
import org.springframework.security.oauth2.server.resource.web.authentication.BearerTokenAuthenticationFilter;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;
import org.springframework.web.client.RestTemplate;

/** An API for the users of Latchkey: mvn spring-boot:run */
@SpringBootApplication
@EnableMethodSecurity
@RestController
public class Api {
    private static final Logger log = LoggerFactory.getLogger(Api.class);

    private final String latchkey;
    private final String internal;
    private final JdkClientHttpRequestFactory requests = new JdkClientHttpRequestFactory();
    private final RestClient client;

    Api(@Value("${latchkey.url}") String latchkey, @Value("${latchkey.internal-url}") String internal,
            @Value("${LATCHKEY_SERVICE_ROLE_KEY:}") String serviceRoleKey) {
        this.latchkey = latchkey;
        this.internal = internal;
        requests.setReadTimeout(Duration.ofSeconds(5));
        client = RestClient.builder().requestFactory(requests).baseUrl(internal)
                .defaultHeaders(headers -> headers.setBearerAuth(serviceRoleKey)).build();
    }

    public static void main(String[] arguments) {
        SpringApplication.run(Api.class, arguments);
    }

    /** Wait for the keys as long as for the introspection, not half a second. */
    @Bean
    JwkSetUriJwtDecoderBuilderCustomizer timeout() {
        return builder -> builder.restOperations(new RestTemplate(requests));
    }

    /** By default Spring accepts tokens without `exp`, and for a minute after it. */
    @Bean
    JwtTimestampValidator expiry() {
        var validator = new JwtTimestampValidator(Duration.ofSeconds(10));
        validator.setAllowEmptyExpiryClaim(false);
        return validator;
    }

    @Bean
    OAuth2TokenValidator<Jwt> forSession() {
        return token -> token.hasClaim("sub") && token.hasClaim("session_id") && !token.hasClaim("client_id")
                ? OAuth2TokenValidatorResult.success()
                : OAuth2TokenValidatorResult.failure(
                        new OAuth2Error("invalid_token", "not issued for a session", null));
    }

    @Bean
    SecurityFilterChain security(HttpSecurity http) {
        var refusal = new BearerTokenAuthenticationEntryPoint();
        return http
                .authorizeHttpRequests(any -> any
                        .dispatcherTypeMatchers(DispatcherType.ERROR).permitAll()
                        .anyRequest().authenticated())
                .sessionManagement(sessions -> sessions.sessionCreationPolicy(SessionCreationPolicy.STATELESS))
                // Browsers do not send the header on their own, so no other site can forge such a request.
                .csrf(csrf -> csrf.disable())
                .oauth2ResourceServer(server -> server
                        .jwt(Customizer.withDefaults())
                        .authenticationEntryPoint((request, response, error) -> {
                            // A reason may quote the token, which must not add lines to the log.
                            var reason = error.getMessage().replaceAll("\\p{Cntrl}", "?");
                            log.warn("Token refused: {}, expected from {}", reason, latchkey);
                            refusal.commence(request, response, error);
                        }))
                // If the keys cannot be fetched, the token may be valid.
                .addFilterBefore((request, response, chain) -> {
                    try {
                        chain.doFilter(request, response);
                    } catch (AuthenticationServiceException error) {
                        unavailable(error);
                        ((HttpServletResponse) response).setStatus(503);
                    }
                }, BearerTokenAuthenticationFilter.class)
                .build();
    }

    @ExceptionHandler(RestClientException.class)
    @ResponseStatus(HttpStatus.SERVICE_UNAVAILABLE)
    void unavailable(Exception error) {
        log.error("No answer from {}: {}", internal, error.getMessage());
    }

    @GetMapping("/me")
    Map<String, String> me(@AuthenticationPrincipal Jwt token) {
        return Map.of("id", token.getSubject(), "email", token.getClaimAsString("email"));
    }

    // The audience says that no second step is missing; `aal` says whether there was one.
    @GetMapping("/reports")
    Map<String, List<String>> reports(@AuthenticationPrincipal Jwt token) {
        if (!"admin".equals(token.getClaim("role")) || !"aal2".equals(token.getClaim("aal"))) {
            throw new AccessDeniedException("for administrators at aal2");
        }
        return Map.of("reports", List.of());
    }

    @GetMapping("/drafts")
    @PreAuthorize("hasRole('editor')")
    Map<String, List<String>> drafts() {
        return Map.of("drafts", List.of());
    }

    // An access token outlives a log-out. Ask where that matters, not for every request.
    @PostMapping("/payments")
    Map<String, String> pay(@AuthenticationPrincipal Jwt token) {
        if (token.getClaimAsBoolean("is_anonymous")) {
            throw new AccessDeniedException("not for anonymous users");
        }
        if (!isActive(token)) {
            throw new InvalidBearerTokenException("the session has ended");
        }
        return Map.of("paid_by", token.getSubject());
    }

    /** Ask Latchkey whether the user is still signed in. */
    private boolean isActive(Jwt token) {
        var form = MultiValueMap.fromSingleValue(Map.of("token", token.getTokenValue()));
        return client.post().uri("/introspect").body(form).retrieve().body(Introspection.class).active();
    }

    record Introspection(boolean active) {}
}
